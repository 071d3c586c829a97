package simulated

import (
	"crypto/sha1" //nolint:gosec // Windows names the certificates of a store by it
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// rootsKey has a key for each certificate of the machine's store "ROOT", named by the SHA-1 of the certificate, whose
// value Blob has its properties (learn.microsoft.com/windows/win32/seccrypto/system-store-locations).
const rootsKey = `HKLM\SOFTWARE\Microsoft\SystemCertificates\ROOT\Certificates`

// certificateProperty is the property with the certificate itself. Each property in a Blob has a header of three
// 32-bit numbers: the property, 1, and the length of its data ([MS-GPEF] 2.2.1.2.3).
const certificateProperty = 0x20

type rootsView struct{ p *process }

func (v rootsView) registry() registryView { return registryView(v) }

func (v rootsView) List() (all [][]byte, err error) {
	_, keys, err := v.registry().List(rootsKey)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	for _, key := range keys {
		blob, err := v.registry().Get(rootsKey+`\`+key, "Blob")
		if err != nil {
			return nil, err
		}
		if certificate := certificateOf(blob.Binary); certificate != nil {
			all = append(all, certificate)
		}
	}
	return all, err
}

// certificateOf returns the certificate of a Blob; nil if it has none.
func certificateOf(blob []byte) []byte {
	const header = 12
	for len(blob) >= header {
		property, length := binary.LittleEndian.Uint32(blob), binary.LittleEndian.Uint32(blob[8:])
		if blob = blob[header:]; uint64(length) > uint64(len(blob)) {
			return nil
		}
		if property == certificateProperty {
			return blob[:length]
		}
		blob = blob[length:]
	}
	return nil
}

func (v rootsView) Add(certificate []byte) error {
	if _, err := x509.ParseCertificate(certificate); err != nil { // CertCreateCertificateContext refuses it too
		return fmt.Errorf("read the certificate: %w", err)
	}
	blob := binary.LittleEndian.AppendUint32(nil, certificateProperty)
	blob = binary.LittleEndian.AppendUint32(blob, 1)
	blob = append(binary.LittleEndian.AppendUint32(blob, uint32(len(certificate))), certificate...)
	return v.registry().Set(rootKey(certificate), platform.RegistryValue{Name: "Blob", Type: platform.RegistryBinary, Binary: blob})
}

func (v rootsView) Remove(certificate []byte) error {
	if err := v.registry().DeleteKey(rootKey(certificate)); err != nil {
		return fmt.Errorf("remove the certificate from the store of root certificates: %w", err)
	}
	return nil
}

func rootKey(certificate []byte) string {
	return rootsKey + `\` + strings.ToUpper(fmt.Sprintf("%x", sha1.Sum(certificate))) //nolint:gosec // see the import
}
