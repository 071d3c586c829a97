package vm

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/localfile"
)

// writeKeys makes the SSH key pair with which swdt logs in to a VM, and writes the pair into the
// folder.
func writeKeys(folder, name string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make the VM's SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "swdt VM "+name)
	if err != nil {
		return fmt.Errorf("make the VM's SSH key: %w", err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return fmt.Errorf("make the VM's SSH key: %w", err)
	}
	authorized := append(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key)), " swdt\n"...)
	for file, content := range map[string][]byte{keyFile: pem.EncodeToMemory(block), publicKeyFile: authorized} {
		if err := os.WriteFile(filepath.Join(folder, file), content, localfile.Private); err != nil {
			return fmt.Errorf("write the VM's SSH key: %w", err)
		}
	}
	return nil
}

// maxKey is far larger than a file with a key, in bytes.
const maxKey = 64 << 10

// keysFor returns the public keys that may log in to a new VM, as lines of authorized_keys: the
// VM's own key and, if the node file names a private key, the public key of that private key.
func keysFor(folder string, document config.Document) ([]string, error) {
	own, err := readSmall(filepath.Join(folder, publicKeyFile), maxKey)
	if err != nil {
		return nil, fmt.Errorf("read the VM's SSH key: %w", err)
	}
	keys := []string{strings.TrimSpace(string(own))}
	if document.Node.Spec.Credentials.PrivateKey == "" {
		return keys, nil
	}
	path := document.Resolve(document.Node.Spec.Credentials.PrivateKey)
	key, err := publicKey(path)
	if err != nil {
		return nil, &config.Error{Problems: []config.Problem{document.Problem("spec.credentials.privateKey", err.Error(),
			"name a private key whose public key is beside it, or remove the field: the VM has a key of its own")}}
	}
	return append(keys, key), nil
}

// publicKey returns the public key of the private key at path, as a line of authorized_keys. It
// needs no passphrase: it reads path.pub, or the public part of the private key's file.
func publicKey(path string) (string, error) {
	if beside, err := readSmall(path+".pub", maxKey); err == nil {
		text, _ := windowstext.Decode(beside) // the private key has the public one, too
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text.Content)); err == nil {
			return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
		}
	}
	text, err := readSmall(path, maxKey)
	if err != nil {
		return "", err
	}
	signer, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
	case errors.As(err, &locked) && locked.PublicKey != nil:
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(locked.PublicKey))), nil
	}
	return "", err
}

// maxKnownHosts is far larger than a file with the keys of one VM, in bytes.
const maxKnownHosts = 64 << 10

// pin rewrites the file of the VM's known host keys for the VM's present address, whose port may
// have changed since the keys were seen. It reports whether the file has any key. If so, swdt must
// trust these keys alone; if not, it may trust the key of the first contact.
func pin(path, address string) (bool, error) {
	text, err := readSmall(path, maxKnownHosts)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the VM's host keys: %w; remove the file if you trust the VM's present key", err)
	}
	host, found := knownhosts.Normalize(address), false
	var pinned strings.Builder
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 3 && fields[0][0] != '#' && fields[0][0] != '@' {
			fields[0], found = host, true
			line = strings.Join(fields, " ") + "\n"
		}
		pinned.WriteString(line)
	}
	if pinned.String() == string(text) {
		return found, nil
	}
	if err := localfile.Replace(path, []byte(pinned.String())); err != nil {
		return found, fmt.Errorf("write the VM's host keys: %w", err)
	}
	return found, nil
}

// greetLimit bounds the wait for the greeting of an SSH server that runs. A guest that is still
// starting does not greet.
const greetLimit = 2 * time.Second

// maxHostKey is far larger than the file of a public key, in bytes.
const maxHostKey = 16 << 10

// hostKeyFiles returns the paths of the guest's files with the public keys of its SSH server.
func hostKeyFiles() []string {
	const folder = `C:\ProgramData\ssh\ssh_host_`
	return []string{folder + "ed25519_key.pub", folder + "ecdsa_key.pub", folder + "rsa_key.pub"}
}

// pinReported pins the host keys that the guest reports through its agent, if the driver can read
// the guest's files. It reports whether it has pinned any key. Its failures do not fail the
// command: swdt then pins the key of the first contact. pinReported reads the files only after the
// SSH server has greeted, since an image's first start may make new keys.
func pinReported(ctx context.Context, record Record, driver Driver, address string) bool {
	guest, ok := driver.(GuestReader)
	if !ok {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, greetLimit)
	defer cancel()
	if greets(bounded, address, slowGreeting) != nil {
		return false
	}
	// If the agent fails after some files, the keys in these files are still correct.
	files, _ := guest.GuestFiles(ctx, record.Machine, maxHostKey, hostKeyFiles()...)
	var lines strings.Builder
	for _, path := range hostKeyFiles() {
		// swdt takes only the key itself from the file, so the guest can add neither names nor
		// options.
		if key, _, _, _, err := ssh.ParseAuthorizedKey(files[path]); err == nil && !isCertificate(key) {
			lines.WriteString(knownhosts.Line([]string{address}, key) + "\n")
		}
	}
	if lines.Len() == 0 {
		return false
	}
	return localfile.Replace(record.KnownHosts(), []byte(lines.String())) == nil
}

func isCertificate(key ssh.PublicKey) bool {
	_, is := key.(*ssh.Certificate)
	return is
}
