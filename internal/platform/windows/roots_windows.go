package windows

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// roots is the store "ROOT" of the local machine. It shows the certificates of all its physical stores (registry, group
// policy, third parties), and changes the one in the registry: under Wine, a removal from the whole store is undone when
// the store is closed.
type roots struct{}

func (roots) List() (all [][]byte, err error) {
	store, err := openRoots(windows.CERT_STORE_PROV_SYSTEM, windows.CERT_STORE_READONLY_FLAG)
	if err != nil {
		return nil, err
	}
	defer windows.CertCloseStore(store, 0)
	err = eachOf(store, func(context *windows.CertContext) (bool, error) {
		all = append(all, encoded(context))
		return true, nil
	})
	return all, err
}

func (roots) Add(certificate []byte) error {
	if len(certificate) == 0 {
		return fmt.Errorf("add an empty root certificate: %w", fault.ErrNotSupported)
	}
	store, err := openRoots(windows.CERT_STORE_PROV_SYSTEM_REGISTRY, 0)
	if err != nil {
		return err
	}
	defer windows.CertCloseStore(store, 0)
	context, err := windows.CertCreateCertificateContext(windows.X509_ASN_ENCODING, &certificate[0], uint32(len(certificate)))
	if err != nil {
		return failed(err, "read the certificate")
	}
	defer windows.CertFreeCertificateContext(context)
	return failed(windows.CertAddCertificateContextToStore(store, context, windows.CERT_STORE_ADD_REPLACE_EXISTING, nil),
		"add the certificate to the store of root certificates")
}

func (roots) Remove(certificate []byte) error {
	store, err := openRoots(windows.CERT_STORE_PROV_SYSTEM_REGISTRY, 0)
	if err != nil {
		return err
	}
	defer windows.CertCloseStore(store, 0)
	found := false
	err = eachOf(store, func(context *windows.CertContext) (bool, error) {
		if found = bytes.Equal(encoded(context), certificate); !found {
			return true, nil
		}
		// CertDeleteCertificateFromStore frees the context that it gets, and the enumeration frees its own.
		return false, windows.CertDeleteCertificateFromStore(windows.CertDuplicateCertificateContext(context))
	})
	if err == nil && !found {
		err = fault.ErrNotExist
	}
	return failed(err, "remove the certificate from the store of root certificates")
}

func openRoots(provider uintptr, flags uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString("ROOT")
	if err != nil {
		return 0, err
	}
	store, err := windows.CertOpenStore(provider, 0, 0,
		windows.CERT_SYSTEM_STORE_LOCAL_MACHINE|flags, uintptr(unsafe.Pointer(name)))
	return store, failed(err, "open the store of root certificates")
}

// eachOf calls visit for each certificate of a store until it returns false.
func eachOf(store windows.Handle, visit func(*windows.CertContext) (bool, error)) error {
	var context *windows.CertContext
	for {
		var err error
		context, err = windows.CertEnumCertificatesInStore(store, context) // frees the one before
		if errors.Is(err, windows.Errno(windows.CRYPT_E_NOT_FOUND)) || err == nil && context == nil {
			return nil
		}
		if err != nil {
			return failed(err, "list the root certificates")
		}
		more, err := visit(context)
		if err != nil || !more {
			windows.CertFreeCertificateContext(context)
			return err
		}
	}
}

func encoded(context *windows.CertContext) []byte {
	return slices.Clone(unsafe.Slice(context.EncodedCert, context.Length))
}
