package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// authorizedKeysFile is the one that Win32-OpenSSH reads for members of
	// Administrators, instead of those in their profiles.
	authorizedKeysFile = `C:\ProgramData\ssh\administrators_authorized_keys`
	authorizedKeysNew  = authorizedKeysFile + ".swdt-new"
	// authorizedKeysSDDL is what sshd insists on: the file belongs to
	// Administrators, who and SYSTEM alone have access, nothing inherited.
	authorizedKeysSDDL = "O:BAD:PAI(A;;FA;;;BA)(A;;FA;;;SY)"
	// maxAuthorizedKeys bounds what is read of the file, bytes.
	maxAuthorizedKeys = 4 << 20
)

// sshKeys adds public keys to administrators_authorized_keys. What stands there
// stays, byte for byte.
type sshKeys struct {
	wanted  []string // lines, or paths of .pub files
	resolve func(string) string
}

func (s *sshKeys) Name() string { return "SSH keys" }

func (s *sshKeys) Plan(ctx context.Context, n *node.Node) (plan.Change, error) {
	state, err := s.compare(ctx, n)
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

func (s *sshKeys) Apply(ctx context.Context, n *node.Node, _ ui.Reporter) (plan.Outcome, error) {
	state, err := s.compare(ctx, n)
	if err != nil {
		return plan.Outcome{}, err
	}
	if len(state.missing) == 0 {
		return plan.Outcome{}, secure(ctx, n, authorizedKeysFile)
	}
	// A file of its own, secured before it takes the name: there is no moment
	// at which sshd finds half a file, or one that it must refuse.
	if err := writeFile(ctx, n, authorizedKeysNew, state.merged()); err != nil {
		return plan.Outcome{}, err
	}
	if err := secure(ctx, n, authorizedKeysNew); err != nil {
		return plan.Outcome{}, err
	}
	rename := &agentv1.RenameRequest{From: authorizedKeysNew, To: authorizedKeysFile, Replace: true}
	if _, err := n.Files.Rename(ctx, rename); err != nil {
		return plan.Outcome{}, fmt.Errorf("put the new file in place: %w", err)
	}
	return plan.Outcome{}, nil
}

// keysState is the file as it is, and what it lacks.
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
	state.content, err = readFile(ctx, n, authorizedKeysFile)
	switch {
	case errors.Is(err, host.ErrNotExist):
	case err != nil:
		return state, err
	default:
		state.exists = true
		if state.secure, err = restricted(ctx, n, authorizedKeysFile); err != nil {
			return state, err
		}
	}
	if bytes.HasPrefix(state.content, []byte{0xff, 0xfe}) || bytes.HasPrefix(state.content, []byte{0xfe, 0xff}) {
		return state, fmt.Errorf("%s is UTF-16, which sshd cannot read: save it as UTF-8 or remove it", authorizedKeysFile)
	}
	present := map[string]bool{}
	for _, key := range parseKeys(state.content) {
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

// merged is the file with the missing keys at its end, with its own line ends.
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
	blob string // type and key: what makes two lines the same key
	key  ssh.PublicKey
	note string // the comment
}

func (k publicKey) describe() string {
	text := strings.TrimPrefix(k.key.Type(), "ssh-") + " " + ssh.FingerprintSHA256(k.key)
	if k.note != "" {
		text += " (" + k.note + ")"
	}
	return text
}

// load reads the wanted keys: each a line, or a file of such lines.
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
			return nil, fmt.Errorf("read the public key: %w; write a key as authorized_keys has it, or the path of a .pub file", err)
		}
		found := parseKeys(content)
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no public key: give the .pub file, not the private key", path)
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

func parseKeys(content []byte) []publicKey {
	var keys []publicKey
	for line := range strings.Lines(string(content)) {
		if key, ok := parseKey(line); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

func parseKey(line string) (publicKey, bool) {
	line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
	if line == "" || strings.HasPrefix(line, "#") || strings.ContainsAny(line, "\r\n") {
		return publicKey{}, false
	}
	key, note, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return publicKey{}, false
	}
	return publicKey{line: line, blob: string(key.Marshal()), key: key, note: note}, true
}

// isSecure reports whether Administrators or SYSTEM own the file, and they and
// nobody else have access, all of it. Windows may list the two in either order,
// and writes well-known SIDs and rights as letters.
func isSecure(sddl string) bool {
	owner, list := splitSDDL(sddl)
	if !isAdministrators(owner) && !isSystem(owner) {
		return false
	}
	flags, entries, _ := strings.Cut(list, "(")
	if !strings.Contains(flags, "P") {
		return false // what the folder grants would come in
	}
	var administrators, system bool
	for _, entry := range strings.Split(strings.TrimSuffix(entries, ")"), ")(") {
		fields := strings.Split(entry, ";")
		if len(fields) != 6 || fields[0] != "A" || fields[2] != "FA" && !strings.EqualFold(fields[2], "0x1f01ff") {
			return false
		}
		switch trustee := fields[5]; {
		case isAdministrators(trustee):
			administrators = true
		case isSystem(trustee):
			system = true
		default:
			return false
		}
	}
	return administrators && system
}

// splitSDDL finds the owner and the access list; a group or an audit list is of
// no interest.
func splitSDDL(sddl string) (owner, list string) {
	rest, ok := strings.CutPrefix(sddl, "O:")
	if ok {
		owner = rest
		for _, next := range []string{"G:", "D:", "S:"} {
			owner, _, _ = strings.Cut(owner, next)
		}
	}
	_, list, _ = strings.Cut(sddl, "D:")
	list, _, _ = strings.Cut(list, "S:")
	return owner, list
}

func isAdministrators(sid string) bool { return sid == "BA" || sid == "S-1-5-32-544" }
func isSystem(sid string) bool         { return sid == "SY" || sid == "S-1-5-18" }

func secure(ctx context.Context, n *node.Node, path string) error {
	if _, err := n.Files.SetACL(ctx, &agentv1.SetACLRequest{Path: path, Sddl: authorizedKeysSDDL}); err != nil {
		return fmt.Errorf("restrict access to %s: %w", path, err)
	}
	is, err := restricted(ctx, n, path)
	if err != nil {
		return err
	}
	if !is {
		return fmt.Errorf("restrict access to %s: others still have it; is the file system NTFS?", path)
	}
	return nil
}

// restricted reports whether sshd will take the file. Wine keeps no access
// lists: what it reports is made up from the Linux file's mode.
func restricted(ctx context.Context, n *node.Node, path string) (bool, error) {
	acl, err := n.Files.GetACL(ctx, &agentv1.GetACLRequest{Path: path})
	if err != nil {
		return false, fmt.Errorf("read the access list of %s: %w", path, err)
	}
	if isSecure(acl.GetSddl()) {
		return true, nil
	}
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return false, fmt.Errorf("read what kind of machine it is: %w", err)
	}
	return facts.GetSimulated() == "wine", nil
}

func readFile(ctx context.Context, n *node.Node, path string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := n.Files.Read(ctx, &agentv1.ReadRequest{Path: path})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var content []byte
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return content, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		content = append(content, reply.GetData()...)
		if len(content) > maxAuthorizedKeys {
			return nil, fmt.Errorf("read %s: larger than %s, which cannot be right", path, ui.Size(maxAuthorizedKeys))
		}
	}
}

func writeFile(ctx context.Context, n *node.Node, path string, content []byte) error {
	stream, err := n.Files.Write(ctx)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	// What Send fails with is io.EOF; CloseAndRecv has the reason.
	_ = stream.Send(&agentv1.WriteRequest{
		Header: &agentv1.WriteHeader{Path: path, Size: int64(len(content)), MakeFolder: true},
		Data:   content,
	})
	if _, err := stream.CloseAndRecv(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
