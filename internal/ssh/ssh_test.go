package ssh_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	server "github.com/gliderlabs/ssh"
	"github.com/pkg/sftp"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/swdt-dev/swdt/internal/ssh"
	"github.com/swdt-dev/swdt/internal/ssh/sshtest"
)

// prompter answers questions; what it was asked is kept.
type prompter struct {
	mu      sync.Mutex
	yes     bool
	secrets []string // answers, in order; the last one again and again
	asked   []string
}

func (p *prompter) Confirm(_ context.Context, question string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, question)
	return p.yes, nil
}

func (p *prompter) Secret(_ context.Context, question string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, question)
	answer := p.secrets[0]
	if len(p.secrets) > 1 {
		p.secrets = p.secrets[1:]
	}
	return answer, nil
}

func (p *prompter) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// options are those of a home folder of the test's own, with nothing in the
// environment.
func options(t *testing.T, trusted ...*sshtest.Server) ssh.Options {
	t.Helper()
	return ssh.Options{
		HomeDir:    t.TempDir(),
		KnownHosts: sshtest.Trust(t, trusted...),
		LookupEnv:  func(string) (string, bool) { return "", false },
		Timeout:    10 * time.Second,
	}
}

func secret(s string) ssh.Secret { return func() (string, error) { return s, nil } }

// works connects, runs a command that the server echoes, and closes.
func works(t *testing.T, target ssh.Target, o ssh.Options) {
	t.Helper()
	c, err := ssh.Dial(t.Context(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out, err := c.Run(t.Context(), "say hello")
	if err != nil || out.Stdout != "say hello" || out.ExitCode != 3 {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func echo(s server.Session) {
	io.WriteString(s, s.RawCommand())
	s.Exit(3)
}

func fails[E error](t *testing.T, target ssh.Target, o ssh.Options, words ...string) E {
	t.Helper()
	c, err := ssh.Dial(t.Context(), target, o)
	if err == nil {
		c.Close()
		t.Fatal("it connected")
	}
	var want E
	if !errors.As(err, &want) {
		t.Fatalf("got a %T: %v", err, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q: %v", word, err)
		}
	}
	return want
}

// ------------------------------------------------------------ ways to log in

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
			t.Errorf("got %q", e.Problem)
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

// legacyKey is a key as ssh-keygen wrote it for long, without its public half.
// It is also much faster to unlock.
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

// agentWith serves an SSH agent that holds the keys, and returns the environment
// in which it is found.
func agentWith(t *testing.T, keys ...sshtest.Key) func(string) (string, bool) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no Unix sockets")
	}
	ring := agent.NewKeyring()
	for _, key := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: key.Private}); err != nil {
			t.Fatal(err)
		}
	}
	// A Unix socket's path is short; the test's own folder may not be.
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
			go agent.ServeAgent(ring, conn)
		}
	}()
	return func(name string) (string, bool) { return socket, name == "SSH_AUTH_SOCK" }
}

func TestAgentKey(t *testing.T) {
	key, other := sshtest.NewKey(t), sshtest.NewKey(t)
	s := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public()}, Run: echo})
	o := options(t, s)
	o.LookupEnv = agentWith(t, other, key)
	works(t, ssh.Target{Host: s.Address}, o)
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
		e := fails[*ssh.AuthError](t, ssh.Target{Host: s.Address}, o, "others may read it")
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

// ----------------------------------------------------------- ways not to

func TestKeyFileProblems(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "right"})
	folder := t.TempDir()
	open := sshtest.Write(t, folder, "open", sshtest.NewKey(t).PEM(t, ""))
	if err := os.Chmod(open, 0o640); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		problem    ssh.KeyProblem
		remedy     string
	}{
		{"missing", filepath.Join(folder, "none"), ssh.KeyMissing, "ssh-keygen"},
		{"a folder", folder, ssh.KeyUnreadable, "readable"},
		{"too open", open, ssh.KeyTooOpen, "chmod 600"},
		{"no key", sshtest.Write(t, folder, "text", "hello"), ssh.KeyInvalid, ".pub"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.problem == ssh.KeyTooOpen {
				t.Skip("file modes say nothing")
			}
			e := fails[*ssh.KeyFileError](t, ssh.Target{Host: s.Address, PrivateKey: c.path}, options(t, s), c.path, c.remedy)
			if e.Problem != c.problem {
				t.Errorf("got %q", e.Problem)
			}
		})
	}
	if s.Accepted() != 0 {
		t.Errorf("the machine was contacted %d times", s.Accepted())
	}
}

func TestRejectedLoginSaysWhatWasTried(t *testing.T) {
	key := sshtest.NewKey(t)
	s := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{}, Password: "right", Interactive: "right"})
	path := sshtest.Write(t, t.TempDir(), "key", key.PEM(t, ""))

	e := fails[*ssh.AuthError](t, ssh.Target{Host: s.Address, User: "dev", PrivateKey: path}, options(t, s),
		"as dev", path, "administrators_authorized_keys")
	if want := []string{"publickey (" + path + ")"}; !slices.Equal(e.Tried, want) {
		t.Errorf("tried %q", e.Tried)
	}
	if !slices.Contains(e.Accepts, "password") {
		t.Errorf("accepts %q", e.Accepts)
	}

	e = fails[*ssh.AuthError](t, ssh.Target{Host: s.Address, Password: secret("wrong")}, options(t, s), "as Administrator")
	if want := []string{"password", "keyboard-interactive"}; !slices.Equal(e.Tried, want) {
		t.Errorf("tried %q", e.Tried)
	}

	fails[*ssh.AuthError](t, ssh.Target{Host: s.Address}, options(t, s), "nothing to try")
}

func TestAPasswordIsNotSentWhereItIsVisible(t *testing.T) {
	answers := make(chan []string, 1)
	s := startVisible(t, answers)
	o := options(t)
	o.AcceptNewHostKey = true
	fails[*ssh.AuthError](t, ssh.Target{Host: s, Password: secret("right")}, o)
	if got := <-answers; len(got) != 0 {
		t.Errorf("answered %q", got)
	}
}

// startVisible asks for something that is not hidden.
func startVisible(t *testing.T, got chan<- []string) string {
	t.Helper()
	srv := &server.Server{
		KeyboardInteractiveHandler: func(_ server.Context, ask xssh.KeyboardInteractiveChallenge) bool {
			answers, _ := ask("", "", []string{"Your name: "}, []bool{true})
			got <- answers
			return false
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { srv.Serve(listener); close(served) }()
	t.Cleanup(func() { srv.Close(); <-served })
	return listener.Addr().String()
}

func TestSecretThatCannotBeReadStopsBeforeAnythingIsContacted(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "right"})
	unset := func() (string, error) { return "", errors.New("PW is not set") }
	fails[*ssh.SecretError](t, ssh.Target{Host: s.Address, Password: unset}, options(t, s), "password", "PW is not set")
	if s.Accepted() != 0 {
		t.Error("the machine was contacted")
	}
}

func TestUnreachable(t *testing.T) {
	o := options(t)
	o.AcceptNewHostKey = true
	t.Run("refused", func(t *testing.T) {
		fails[*ssh.RefusedError](t, ssh.Target{Host: sshtest.Closed(t)}, o, "Start-Service sshd")
	})
	t.Run("no answer", func(t *testing.T) {
		o := o
		o.Timeout = 50 * time.Millisecond
		e := fails[*ssh.TimeoutError](t, ssh.Target{Host: sshtest.Stall(t)}, o, "SSH handshake", "firewall")
		if !errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("got %v", e.Err)
		}
	})
	t.Run("not SSH", func(t *testing.T) {
		fails[*ssh.HandshakeError](t, ssh.Target{Host: sshtest.Babble(t, "HTTP/1.1 400 Bad Request\r\n\r\n")}, o, "SSH server")
	})
	t.Run("hangs up", func(t *testing.T) {
		fails[*ssh.HandshakeError](t, ssh.Target{Host: sshtest.Babble(t, "")}, o)
	})
	t.Run("no such name", func(t *testing.T) {
		fails[*ssh.NameError](t, ssh.Target{Host: "no..node"}, ssh.Options{HomeDir: t.TempDir()}, "no..node")
	})
	t.Run("no host", func(t *testing.T) {
		fails[*ssh.RouteError](t, ssh.Target{Host: "a:b:c"}, o, "spec.credentials.hostname")
	})
}

func TestCancelIsNotAFailureOfTheNode(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := sshtest.Stall(t)
	o := options(t)
	failed := make(chan error, 1)
	go func() {
		_, err := ssh.Dial(ctx, ssh.Target{Host: address}, o)
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestDeadlineOfTheWholeIsATimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := ssh.Dial(ctx, ssh.Target{Host: sshtest.Stall(t)}, options(t))
	var timeout *ssh.TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("got %v", err)
	}
}

// ------------------------------------------------------------- connection

func TestProcess(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "p", Run: func(session server.Session) {
		fmt.Fprint(session.Stderr(), strings.Repeat("x", 200<<10)+"last words")
		io.Copy(session, session)
		session.Exit(7)
	}})
	c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Start(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(p.Stdin, "ping")
	p.Stdin.Close()
	back, err := io.ReadAll(p.Stdout)
	if err != nil || string(back) != "ping" {
		t.Fatalf("got %q, %v", back, err)
	}
	if code, err := p.ExitCode(t.Context()); code != 7 || err != nil {
		t.Fatalf("got exit code %d, %v", code, err)
	}
	if kept := p.Stderr(); len(kept) != 64<<10 || !strings.HasSuffix(kept, "last words") {
		t.Errorf("kept %d bytes of stderr", len(kept))
	}
}

func TestRunIsBoundedByItsContext(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "p", Run: func(session server.Session) { <-session.Context().Done() }})
	c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Run(ctx, "hang"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
}

func TestCutConnectionEndsEverything(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "p", Run: func(session server.Session) { <-session.Context().Done() }})
	c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Start(t.Context(), "hang")
	if err != nil {
		t.Fatal(err)
	}
	s.Cut()
	if code, err := p.ExitCode(t.Context()); code != -1 || err == nil {
		t.Errorf("got exit code %d, %v", code, err)
	}
	<-c.Done()
	if c.Err() == nil {
		t.Error("the connection ended without a reason")
	}
	if _, err := c.Start(t.Context(), "more"); err == nil {
		t.Error("a command was started on a broken connection")
	}
}

func TestSFTP(t *testing.T) {
	handlers := sftp.InMemHandler()
	s := sshtest.Start(t, sshtest.Options{Password: "p", SFTP: &handlers})
	c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	files, err := c.SFTP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if err := files.Mkdir("/C:"); err != nil {
		t.Fatal(err)
	}
}

func TestNoSFTP(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "p"})
	c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.SFTP(t.Context())
	var missing *ssh.NoSFTPError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "Subsystem sftp") {
		t.Fatalf("got %v", err)
	}
}
