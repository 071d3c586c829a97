package ssh_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/node/ssh/sshtest"
)

func TestPassword(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "right", User: "Administrator", Run: echo})
	works(t, ssh.Target{Host: s.Address, Password: secret("right")}, options(t, s))
}

func TestPasswordFallsBackToKeyboardInteractive(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Interactive: "right", Run: echo})
	works(t, ssh.Target{Host: s.Address, Password: secret("right")}, options(t, s))
}

func TestKey(t *testing.T) {
	key := sshtest.NewKey(t)
	s := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public()}, User: "dev", Run: echo})
	path := sshtest.Write(t, t.TempDir(), "key", key.PEM(t, ""))
	works(t, ssh.Target{Host: s.Address, User: "dev", PrivateKey: path}, options(t, s))
}

func TestLockedKey(t *testing.T) {
	key := sshtest.NewKey(t)
	legacyPEM, legacy := legacyKey(t, "open sesame")
	s := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public(), legacy}, Run: echo})
	locked := ssh.Target{Host: s.Address, PrivateKey: sshtest.Write(t, t.TempDir(), "key", key.PEM(t, "open sesame"))}
	target := ssh.Target{Host: s.Address, PrivateKey: sshtest.Write(t, t.TempDir(), "legacy", legacyPEM)}

	for _, target := range []ssh.Target{locked, target} {
		t.Run("passphrase from a source: "+filepath.Base(target.PrivateKey), func(t *testing.T) {
			target.Passphrase = secret("open sesame")
			works(t, target, options(t, s))
		})
	}
	t.Run("asked for, mistyped once, then remembered", func(t *testing.T) {
		o := options(t, s)
		p := &prompter{secrets: []string{"open barley", "open sesame"}}
		o.Prompt, o.Keyring = p, ssh.NewKeyring()
		works(t, target, o)
		works(t, target, o)
		if p.times() != 2 {
			t.Errorf("asked %q", p.asked)
		}
	})
	t.Run("many nodes at once ask once", func(t *testing.T) {
		o := options(t, s)
		p := &prompter{secrets: []string{"open sesame"}}
		o.Prompt, o.Keyring = p, ssh.NewKeyring()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				c, err := ssh.Dial(t.Context(), target, o)
				if err != nil {
					t.Error(err)
					return
				}
				c.Close()
			})
		}
		all.Wait()
		if p.times() != 1 {
			t.Errorf("asked %q", p.asked)
		}
	})
	t.Run("held by the SSH agent", func(t *testing.T) {
		o := options(t, s)
		o.LookupEnv = agentWith(t, key)
		works(t, locked, o)
	})
	t.Run("wrong passphrase", func(t *testing.T) {
		target := target
		target.Passphrase = secret("open barley")
		e := fails[*ssh.KeyFileError](t, target, options(t, s), target.PrivateKey, "passphraseFrom")
		if e.Problem != ssh.KeyWrongPassphrase {
			t.Errorf("e.Problem is %q, want %q", e.Problem, ssh.KeyWrongPassphrase)
		}
	})
	t.Run("nobody to ask", func(t *testing.T) {
		before := s.Accepted()
		e := fails[*ssh.KeyFileError](t, target, options(t, s), "ssh-add")
		if e.Problem != ssh.KeyNeedsPassphrase || s.Accepted() != before {
			t.Errorf("got %q after %d connections", e.Problem, s.Accepted()-before)
		}
	})
	t.Run("mistyped too often", func(t *testing.T) {
		o := options(t, s)
		p := &prompter{secrets: []string{"wrong"}}
		o.Prompt = p
		fails[*ssh.KeyFileError](t, target, o)
		if p.times() != 3 {
			t.Errorf("asked %d times", p.times())
		}
	})
}

// legacyKey returns a key in the format that ssh-keygen wrote for a long time, without its public
// half. It is also much faster to decrypt.
func legacyKey(t *testing.T, passphrase string) (string, xssh.PublicKey) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 such keys are still in use, whatever their encryption is worth
	block, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", der, []byte(passphrase), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	public, err := xssh.NewPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), public
}

// agentWith serves an SSH agent that holds the keys, and returns the environment with its address.
func agentWith(t *testing.T, keys ...sshtest.Key) func(string) (string, bool) {
	t.Helper()
	ring := ringOf(t, keys...)
	return agentAt(serveAgent(t, func(conn net.Conn) { agent.ServeAgent(ring, conn) }))
}

// ringOf returns an agent that holds the keys.
func ringOf(t *testing.T, keys ...sshtest.Key) agent.Agent {
	t.Helper()
	ring := agent.NewKeyring()
	for _, key := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: key.Private}); err != nil {
			t.Fatal(err)
		}
	}
	return ring
}

// agentAt returns the environment with the address of an SSH agent.
func agentAt(socket string) func(string) (string, bool) {
	return func(name string) (string, bool) { return socket, name == "SSH_AUTH_SOCK" }
}

// serveAgent listens as an SSH agent does, and returns its address. The function serve gets each
// connection.
func serveAgent(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no Unix sockets")
	}
	// The path of a Unix socket must be short; that of the test's own folder may be too long.
	folder, err := os.MkdirTemp("", "swdt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return socket
}

func TestAgentKey(t *testing.T) {
	key, other := sshtest.NewKey(t), sshtest.NewKey(t)
	s := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public()}, Run: echo})
	o := options(t, s)
	o.LookupEnv = agentWith(t, other, key)
	works(t, ssh.Target{Host: s.Address}, o)
}

// slowAgent is an agent that waits before each signature.
type slowAgent struct {
	agent.Agent
	wait func()
}

func (a slowAgent) Sign(key xssh.PublicKey, data []byte) (*xssh.Signature, error) {
	a.wait()
	return a.Agent.Sign(key, data)
}

// A touch of a security key, or an approval in a password manager, may take longer than the timeout.
func TestAgentMaySignSlowly(t *testing.T) {
	key := sshtest.NewKey(t)
	s := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public()}, Run: echo})
	o := options(t, s)
	o.Timeout = 4 * time.Second // long enough for a handshake on a busy machine
	approved := make(chan struct{})
	slow := slowAgent{ringOf(t, key), func() {
		time.AfterFunc(o.Timeout*3/2, func() { close(approved) })
		<-approved
	}}
	o.LookupEnv = agentAt(serveAgent(t, func(conn net.Conn) { agent.ServeAgent(slow, conn) }))
	works(t, ssh.Target{Host: s.Address}, o)
}

// silentAgent returns the address of an SSH agent that never answers.
func silentAgent(t *testing.T) string {
	t.Helper()
	return serveAgent(t, func(conn net.Conn) {
		io.Copy(io.Discard, conn)
		conn.Close()
	})
}

func TestSilentAgentIsSkipped(t *testing.T) {
	key := sshtest.NewKey(t)
	s := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public()}, Run: echo})
	socket := silentAgent(t)
	silent := func(t *testing.T) ssh.Options {
		o := options(t, s)
		o.LookupEnv, o.Timeout = agentAt(socket), 4*time.Second
		return o
	}
	t.Run("and reported if the login fails", func(t *testing.T) {
		fails[*ssh.AuthError](t, ssh.Target{Host: s.Address}, silent(t), "skipped the SSH agent at "+socket, "within 4s")
	})
	t.Run("and the other keys are tried", func(t *testing.T) {
		o := silent(t)
		sshtest.Write(t, o.HomeDir, ".ssh/id_ed25519", key.PEM(t, ""))
		works(t, ssh.Target{Host: s.Address}, o)
	})
	t.Run("and reported if the configured key is encrypted", func(t *testing.T) {
		o := silent(t)
		var warned []string
		o.Warn = func(format string, args ...any) { warned = append(warned, fmt.Sprintf(format, args...)) }
		o.Timeout = time.Millisecond // the agent is asked before the machine
		path := sshtest.Write(t, t.TempDir(), "key", key.PEM(t, "open sesame"))
		fails[*ssh.KeyFileError](t, ssh.Target{Host: s.Address, PrivateKey: path}, o)
		if len(warned) != 1 || !strings.Contains(warned[0], socket) {
			t.Errorf("warned %q, want one warning that names %s", warned, socket)
		}
	})
}

func TestDefaultKeys(t *testing.T) {
	key := sshtest.NewKey(t)
	s := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public()}, Run: echo})

	t.Run("found in .ssh", func(t *testing.T) {
		o := options(t, s)
		sshtest.Write(t, o.HomeDir, ".ssh/id_ed25519", key.PEM(t, ""))
		works(t, ssh.Target{Host: s.Address}, o)
	})
	t.Run("a locked one is unlocked only if the machine wants it", func(t *testing.T) {
		o := options(t, s)
		p := &prompter{secrets: []string{"pass"}}
		o.Prompt = p
		sshtest.Write(t, o.HomeDir, ".ssh/id_ed25519", sshtest.NewKey(t).PEM(t, "other"))
		sshtest.Write(t, o.HomeDir, ".ssh/id_rsa", key.PEM(t, "pass"))
		works(t, ssh.Target{Host: s.Address}, o)
		if p.times() != 1 || !strings.Contains(p.asked[0], "id_rsa") {
			t.Errorf("asked %q", p.asked)
		}
	})
	t.Run("one that others may read is skipped, and said so", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("file modes say nothing")
		}
		o := options(t, s)
		path := sshtest.Write(t, o.HomeDir, ".ssh/id_ed25519", key.PEM(t, ""))
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		e := fails[*ssh.AuthError](t, ssh.Target{Host: s.Address}, o, "other users may read it")
		if len(e.Tried) != 0 {
			t.Errorf("tried %q", e.Tried)
		}
	})
}

func TestPasswordIsAskedForLastAndRemembered(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "right", Run: echo})
	o := options(t, s)
	p := &prompter{secrets: []string{"wrong", "right"}}
	o.Prompt, o.Keyring = p, ssh.NewKeyring()
	works(t, ssh.Target{Host: s.Address}, o)
	works(t, ssh.Target{Host: s.Address}, o)
	if p.times() != 2 {
		t.Errorf("asked %q", p.asked)
	}
}
