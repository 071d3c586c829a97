// Package signature signs the list of a release's files, so that minisign can verify it.
package signature

import (
	"errors"
	"fmt"
	"os"

	"aead.dev/minisign"
)

// Environment variables hold the secret key and its password: an argument list is public.
const (
	KeyVariable      = "SWDT_RELEASE_KEY"      // the text of the key
	FileVariable     = "SWDT_RELEASE_KEY_FILE" // or the file that has it
	PasswordVariable = "SWDT_RELEASE_KEY_PASSWORD"
)

// Extension is appended to the name of a signed file.
const Extension = ".minisig"

// Key is a secret key. It prints as nothing.
type Key struct{ private minisign.PrivateKey }

// String keeps the key out of logs.
func (Key) String() string { return "(secret key)" }

// FromEnvironment returns the key of the environment; nil: the environment has none.
func FromEnvironment(getenv func(string) string) (*Key, error) {
	text := []byte(getenv(KeyVariable))
	if file := getenv(FileVariable); file != "" && len(text) == 0 {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("read the key that %s names: %w", FileVariable, err)
		}
	}
	if len(text) == 0 {
		return nil, nil
	}
	var key Key
	var err error
	if minisign.IsEncrypted(text) {
		key.private, err = minisign.DecryptKey(getenv(PasswordVariable), text)
	} else {
		err = key.private.UnmarshalText(text)
	}
	if err != nil {
		// The library's error could quote the key.
		return nil, errors.New("read the secret key: it is no key of minisign, or " + PasswordVariable +
			" has not its password")
	}
	return &key, nil
}

// Public returns the public key, in one line.
func (k *Key) Public() string {
	public, _ := k.private.Public().(minisign.PublicKey)
	return public.String()
}

// Sign returns the signature of a content. The comment is signed too.
func (k *Key) Sign(content []byte, comment string) []byte {
	return minisign.SignWithComments(k.private, content, comment, "signature of swdt; verify it with minisign")
}

// Verify reports with an error that a signature is not that of the content by the public key, in one line.
func Verify(public string, content, signature []byte) error {
	var key minisign.PublicKey
	if err := key.UnmarshalText([]byte(public)); err != nil {
		return errors.New("read the public key: it is no key of minisign")
	}
	if !minisign.Verify(key, content, signature) {
		return errors.New("the signature is not that of this key for this content")
	}
	return nil
}
