package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// passphraseTries is how often the user may enter a passphrase.
const passphraseTries = 3

// keyFile is a private key that was read from a file. It may be encrypted.
type keyFile struct {
	path   string
	pem    []byte
	signer ssh.Signer    // nil: encrypted
	public ssh.PublicKey // nil: unknown until the key is decrypted
}

// readKey reads a private key; errors are *KeyFileError.
func readKey(path string) (*keyFile, error) {
	pem, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &KeyFileError{Path: path, Problem: KeyMissing, Err: err}
	}
	if err != nil {
		return nil, &KeyFileError{Path: path, Problem: KeyUnreadable, Err: err}
	}
	if tooOpen(path) {
		return nil, &KeyFileError{Path: path, Problem: KeyTooOpen}
	}
	k := &keyFile{path: path, pem: pem}
	var locked *ssh.PassphraseMissingError
	k.signer, err = ssh.ParsePrivateKey(pem)
	switch {
	case err == nil:
		k.public = k.signer.PublicKey()
	case errors.As(err, &locked):
		k.signer, k.public = nil, locked.PublicKey
		if k.public == nil {
			k.public = readPublicKey(path + ".pub")
		}
	default:
		return nil, &KeyFileError{Path: path, Problem: KeyInvalid, Err: windowstext.Explain(pem, "SSH", err)}
	}
	return k, nil
}

// tooOpen reports whether other users may read the file. On Windows, file modes do not show who may
// read a file, and tooOpen returns false.
func tooOpen(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// readPublicKey returns the public key in a file. The public key is optional: if the file is
// missing or invalid, readPublicKey returns nil.
func readPublicKey(path string) ssh.PublicKey {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	text, err := windowstext.Decode(file)
	if err != nil {
		return nil
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text.Content))
	if err != nil {
		return nil
	}
	return public
}

// unlock decrypts the key. The passphrase comes from the configured source or, if no source is
// configured, from the user's answer to a prompt.
func (k *keyFile) unlock(ctx context.Context, passphrase Secret, prompt Prompter) (ssh.Signer, error) {
	if passphrase != nil {
		secret, err := passphrase()
		if err != nil {
			return nil, &SecretError{What: "passphrase of " + k.path, Err: err}
		}
		return k.decrypt(secret)
	}
	if prompt == nil {
		return nil, &KeyFileError{Path: k.path, Problem: KeyNeedsPassphrase}
	}
	var last error
	for try := range passphraseTries {
		question := fmt.Sprintf("Passphrase of %s: ", k.path)
		if try > 0 {
			question = fmt.Sprintf("Wrong passphrase. Passphrase of %s: ", k.path)
		}
		secret, err := prompt.Secret(ctx, question)
		if err != nil {
			return nil, &SecretError{What: "passphrase of " + k.path, Err: err}
		}
		signer, err := k.decrypt(secret)
		if err == nil {
			return signer, nil
		}
		last = err
	}
	return nil, last
}

func (k *keyFile) decrypt(passphrase string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKeyWithPassphrase(k.pem, []byte(passphrase))
	if err != nil {
		return nil, &KeyFileError{Path: k.path, Problem: KeyWrongPassphrase, Err: err}
	}
	return signer, nil
}

// lockedSigner is a signer whose private key is decrypted only when the machine accepts its
// public key.
type lockedSigner struct {
	public ssh.PublicKey
	unlock func() (ssh.Signer, error)
}

func (s *lockedSigner) PublicKey() ssh.PublicKey { return s.public }

func (s *lockedSigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, "")
}

func (s *lockedSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	signer, err := s.unlock()
	if err != nil {
		return nil, err
	}
	return signWith(signer, rand, data, algorithm)
}

// signWith signs data with the algorithm; if the signer has no choice of algorithms or if algorithm
// is empty, with the signer's own algorithm.
func signWith(signer ssh.Signer, rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	if with, ok := signer.(ssh.AlgorithmSigner); ok && algorithm != "" {
		return with.SignWithAlgorithm(rand, data, algorithm)
	}
	return signer.Sign(rand, data)
}

// pausingSigner pauses the watchdog while it signs: the signature may have to wait for a passphrase,
// for a touch of a security key, or for an approval in the program that serves the SSH agent.
type pausingSigner struct {
	ssh.Signer
	dog *watchdog
}

func (s *pausingSigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, "")
}

func (s *pausingSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s.dog.pause()
	defer s.dog.resume()
	return signWith(s.Signer, rand, data, algorithm)
}

// agentKeys returns the keys of the SSH agent at socket. limit bounds the time until the agent has
// listed them. The connection to the agent must stay open while the keys are used; the returned
// function ends that connection.
func agentKeys(ctx context.Context, socket string, limit time.Duration) (
	keys []ssh.Signer, close func() error, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := dialAgent(limited, socket)
	if err != nil {
		return nil, nil, err
	}
	unhook := context.AfterFunc(limited, func() { conn.Close() })
	keys, err = agent.NewClient(conn).Signers()
	switch inTime := unhook(); {
	case !inTime && ctx.Err() == nil:
		return nil, nil, fmt.Errorf("it did not list its keys within %s", limit)
	case !inTime:
		return nil, nil, ctx.Err()
	case err != nil:
		conn.Close()
		return nil, nil, fmt.Errorf("list its keys: %w", err)
	}
	unhook = context.AfterFunc(ctx, func() { conn.Close() })
	return keys, func() error { unhook(); return conn.Close() }, nil
}
