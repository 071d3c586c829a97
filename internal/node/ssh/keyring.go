package ssh

import (
	"sync"

	"golang.org/x/crypto/ssh"
)

// Keyring keeps in memory the secrets that the user typed: unlocked keys and passwords. All
// connections of a command share one Keyring, so that no prompt appears twice, neither for the
// second node nor after a reboot.
type Keyring struct {
	mu        sync.Mutex
	keys      map[string]ssh.Signer
	passwords map[string]string
}

// NewKeyring returns an empty keyring.
func NewKeyring() *Keyring {
	return &Keyring{keys: map[string]ssh.Signer{}, passwords: map[string]string{}}
}

// key returns the key in the file at path. The first call unlocks the key with the function unlock.
// Meanwhile other callers wait; if the first call succeeds, they get its key without asking the
// user again.
func (k *Keyring) key(path string, unlock func() (ssh.Signer, error)) (ssh.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if signer, ok := k.keys[path]; ok {
		return signer, nil
	}
	signer, err := unlock()
	if err != nil {
		return nil, err
	}
	k.keys[path] = signer
	return signer, nil
}

func (k *Keyring) password(account string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	password, ok := k.passwords[account]
	return password, ok
}

// keepPassword remembers a password that was accepted.
func (k *Keyring) keepPassword(account, password string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.passwords[account] = password
}
