package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// authorizedKeysFile is the file that Win32-OpenSSH reads for members of Administrators,
	// instead of the files in their profiles.
	authorizedKeysFile = `C:\ProgramData\ssh\administrators_authorized_keys`
	// authorizedKeysSDDL is the access list that sshd requires.
	authorizedKeysSDDL = smallfile.Administrators
)

// sshKeys adds public keys to administrators_authorized_keys. The existing content
// stays, byte for byte.
type sshKeys struct {
	node    *node.Node
	wanted  []string // lines, or paths of .pub files
	resolve func(string) string
}

func (s *sshKeys) Name() string { return "SSH keys" }

func (s *sshKeys) Plan(ctx context.Context) (plan.Change, error) {
	state, err := s.compare(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	var parts []string
	if len(state.missing) > 0 {
		var keys []string
		for _, key := range state.missing {
			keys = append(keys, key.describe())
		}
		parts = append(parts, "add "+strings.Join(keys, ", "))
	}
	if state.exists && !state.secure {
		parts = append(parts, "restrict access to Administrators and SYSTEM")
	}
	return plan.Change{Needed: len(parts) > 0, Summary: strings.Join(parts, "; ")}, nil
}

func (s *sshKeys) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	state, err := s.compare(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if len(state.missing) == 0 {
		return plan.Outcome{}, smallfile.Restrict(ctx, s.node, authorizedKeysFile, authorizedKeysSDDL)
	}
	// Replace writes a new file and restricts it before it gets its name, so that sshd
	// never reads half a file, or a file that it must refuse.
	return plan.Outcome{}, smallfile.Replace(ctx, s.node, authorizedKeysFile, state.merged(), authorizedKeysSDDL)
}

// keysState is the present authorized_keys file, and the wanted keys that the file lacks.
type keysState struct {
	exists, secure bool
	content        []byte
	missing        []publicKey
}

func (s *sshKeys) compare(ctx context.Context, n *node.Node) (keysState, error) {
	wanted, err := s.load()
	if err != nil {
		return keysState{}, err
	}
	state := keysState{}
	state.content, err = smallfile.Read(ctx, n, authorizedKeysFile)
	switch {
	case errors.Is(err, fault.ErrNotExist):
	case err != nil:
		return state, err
	default:
		state.exists = true
		if state.secure, err = smallfile.Restricted(ctx, n, authorizedKeysFile); err != nil {
			return state, err
		}
	}
	// Win32-OpenSSH skips the mark of UTF-8 (w32_fopen_utf8).
	if err := windowstext.Refuse(state.content, "sshd", windowstext.MarkedUTF8); err != nil {
		return state, fmt.Errorf("read %s: %w, or remove it", authorizedKeysFile, err)
	}
	present := map[string]bool{}
	for _, key := range parseKeys(strings.TrimPrefix(string(state.content), windowstext.MarkedUTF8.Mark())) {
		present[key.blob] = true
	}
	for _, key := range wanted {
		if !present[key.blob] {
			present[key.blob] = true
			state.missing = append(state.missing, key)
		}
	}
	return state, nil
}

// merged returns the content of the file with the missing keys appended. The appended lines have the
// line ends of the file.
func (s keysState) merged() []byte {
	end := "\n"
	if bytes.Contains(s.content, []byte("\r\n")) {
		end = "\r\n"
	}
	out := bytes.Clone(s.content)
	if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, end...)
	}
	for _, key := range s.missing {
		out = append(out, key.line+end...)
	}
	return out
}

// publicKey is one line of an authorized_keys file.
type publicKey struct {
	line string
	blob string // the type and the key; two lines with equal blobs have the same key
	key  ssh.PublicKey
	note string // the comment at the end of the line
}

func (k publicKey) describe() string {
	text := strings.TrimPrefix(k.key.Type(), "ssh-") + " " + ssh.FingerprintSHA256(k.key)
	if k.note != "" {
		text += " (" + k.note + ")"
	}
	return text
}

// load reads the wanted keys. Each element of wanted is a line of authorized_keys, or the path of a
// file with such lines.
func (s *sshKeys) load() ([]publicKey, error) {
	var keys []publicKey
	for _, wanted := range s.wanted {
		if key, ok := parseKey(wanted); ok {
			keys = append(keys, key)
			continue
		}
		path := s.resolve(wanted)
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the public key: %w; write a key as in authorized_keys, or the path of a "+
				".pub file", err)
		}
		text, err := windowstext.Decode(content)
		if err != nil {
			return nil, fmt.Errorf("read the public key %s: %w", path, err)
		}
		found := parseKeys(text.Content)
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no public key: give the .pub file, not the private key", path)
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

func parseKeys(text string) []publicKey {
	var keys []publicKey
	for line := range strings.Lines(text) {
		if key, ok := parseKey(line); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

func parseKey(line string) (publicKey, bool) {
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") || strings.ContainsAny(line, "\r\n") {
		return publicKey{}, false
	}
	key, note, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return publicKey{}, false
	}
	return publicKey{line: line, blob: string(key.Marshal()), key: key, note: note}, true
}
