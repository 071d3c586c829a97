package sandbox

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// The files of Windows' sshd.
const (
	machineHostKey     = `C:\ProgramData\ssh\ssh_host_ed25519_key`
	administratorsKeys = `C:\ProgramData\ssh\administrators_authorized_keys`
)

// HostKeyOf returns the host key that a machine keeps on its disk. As sshd does, it makes the key
// if there is none.
func HostKeyOf(m *simulated.Machine) (ssh.Signer, error) {
	text, err := m.ReadFile(machineHostKey)
	switch {
	case err == nil:
		key, err := ssh.ParsePrivateKey(text)
		if err != nil {
			return nil, fmt.Errorf("read the host key of the machine: %w", err)
		}
		return key, nil
	case !errors.Is(err, fault.ErrNotExist):
		return nil, fmt.Errorf("read the host key of the machine: %w", err)
	}
	key, text, err := NewKey("swdt simulated host")
	if err != nil {
		return nil, err
	}
	m.WriteFile(machineHostKey, text)
	m.WriteFile(machineHostKey+".pub", ssh.MarshalAuthorizedKey(key.PublicKey()))
	return key, nil
}

// Authorize adds keys to a machine's own file of authorized keys, and keeps the keys that the
// file has.
func Authorize(m *simulated.Machine, keys ...ssh.PublicKey) {
	if len(keys) == 0 {
		return
	}
	text, _ := m.ReadFile(administratorsKeys) // a missing file has no keys
	for _, key := range keys {
		if line := ssh.MarshalAuthorizedKey(key); !bytes.Contains(text, line) {
			text = append(text, line...)
		}
	}
	m.WriteFile(administratorsKeys, text)
}

// authorizedBy returns the keys in a machine's own file of authorized keys.
func authorizedBy(m *simulated.Machine) (keys []ssh.PublicKey) {
	rest, err := m.ReadFile(administratorsKeys)
	for err == nil && len(rest) > 0 {
		var key ssh.PublicKey
		if key, _, _, rest, err = ssh.ParseAuthorizedKey(rest); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}
