package sandbox

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// NewKey creates an SSH key pair. It returns the key, and the content of the private key's file
// in OpenSSH's format.
func NewKey(comment string) (ssh.Signer, []byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make an SSH key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("make an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return nil, nil, fmt.Errorf("write an SSH key: %w", err)
	}
	return signer, pem.EncodeToMemory(block), nil
}
