package vm_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// talkative is a driver whose guest reports files.
type talkative struct {
	*simulatedvm.Driver
	files map[string]string
	err   error
}

func (d *talkative) GuestFiles(
	_ context.Context, _ vm.Machine, limit int, paths ...string,
) (map[string][]byte, error) {
	found := map[string][]byte{}
	for _, path := range paths {
		if text, ok := d.files[path]; ok && len(text) <= limit {
			found[path] = []byte(text)
		}
	}
	return found, d.err
}

const ed25519Key, rsaKey = `C:\ProgramData\ssh\ssh_host_ed25519_key.pub`, `C:\ProgramData\ssh\ssh_host_rsa_key.pub`

func publicKey(t *testing.T) string {
	t.Helper()
	signer, _, err := sandbox.NewKey("test")
	check(t, err)
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// greeter listens where a VM's SSH server would, and greets as one.
func greeter(t *testing.T, address string) {
	t.Helper()
	listener := listen(t, address)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			greet(conn)
		}
	}()
}

func greet(conn net.Conn) {
	defer conn.Close()
	_, _ = conn.Write([]byte("SSH-2.0-test\r\n"))
}

// The host keys that the guest agent reports are pinned before the first contact. Whatever a hostile
// guest reports, only keys of its own address are pinned, and a report without keys leaves the first
// contact as it was.
func TestTheHostKeyIsPinnedThroughTheGuestAgent(t *testing.T) {
	key := publicKey(t)
	for name, test := range map[string]struct {
		files map[string]string
		err   error
		quiet bool // the SSH server does not answer yet
		want  string
	}{
		"a key":               {files: map[string]string{ed25519Key: key + " admin@win\r\n"}, want: key},
		"two keys":            {files: map[string]string{ed25519Key: key, rsaKey: key}, want: key},
		"no agent":            {err: errors.New("no guest agent answers")},
		"it fails in between": {files: map[string]string{ed25519Key: key}, err: errors.New("silence"), want: key},
		"no file":             {},
		"no key":              {files: map[string]string{ed25519Key: "\x00\xff"}},
		"too long":            {files: map[string]string{ed25519Key: strings.Repeat(" ", 16<<10) + key}},
		"names and options":   {files: map[string]string{ed25519Key: "@cert-authority * " + key}},
		"options of a key": {files: map[string]string{ed25519Key: `from="*" ` + key + "\nexample.com " + key},
			want: key},
		"before its SSH server": {files: map[string]string{ed25519Key: key}, quiet: true},
	} {
		t.Run(name, func(t *testing.T) {
			driver := &talkative{Driver: &simulatedvm.Driver{}, files: test.files, err: test.err}
			s, ctx := machines(t, t.TempDir(), driver), t.Context()
			doc := document(t, "win-1")
			_, err := s.Create(ctx, doc, ui.Discard{})
			check(t, err)
			report, err := s.Start(ctx, "win-1", ui.Discard{})
			check(t, err)
			if !test.quiet {
				greeter(t, report.Address)
			}
			reached, err := s.Reach(ctx, doc)
			check(t, err)
			if reached.AcceptNewHostKey != (test.want == "") {
				t.Errorf("the first contact is trusted: %t", reached.AcceptNewHostKey)
			}
			pinned, err := os.ReadFile(reached.KnownHosts)
			if err != nil && test.want != "" {
				t.Fatal(err)
			}
			host, port, err := net.SplitHostPort(report.Address)
			check(t, err)
			for line := range strings.Lines(string(pinned)) {
				if strings.TrimSpace(line) != "["+host+"]:"+port+" "+test.want {
					t.Errorf("known_hosts has %q, want the key %q of the VM's address alone", line, test.want)
				}
			}
		})
	}
}

// A key that was seen stays the only one, whatever the guest reports later. A key of the node file
// needs no agent.
func TestAPinnedHostKeyStays(t *testing.T) {
	first, second := publicKey(t), publicKey(t)
	driver := &talkative{Driver: &simulatedvm.Driver{}, files: map[string]string{ed25519Key: first}}
	s, ctx := machines(t, t.TempDir(), driver), t.Context()
	doc := document(t, "win-1")
	_, err := s.Create(ctx, doc, ui.Discard{})
	check(t, err)
	report, err := s.Start(ctx, "win-1", ui.Discard{})
	check(t, err)
	greeter(t, report.Address)
	own := doc
	own.Node.Spec.Credentials.HostKey = "SHA256:abc"
	reached, err := s.Reach(ctx, own)
	check(t, err)
	if _, err := os.Stat(reached.KnownHosts); err == nil {
		t.Error("a key was pinned beside that of the node file")
	}
	for range 2 {
		reached, err := s.Reach(ctx, doc)
		check(t, err)
		text, err := os.ReadFile(reached.KnownHosts)
		check(t, err)
		if !strings.Contains(string(text), first) || strings.Contains(string(text), second) {
			t.Errorf("known_hosts has %q: want %q alone", text, first)
		}
		driver.files[ed25519Key] = second
	}
}
