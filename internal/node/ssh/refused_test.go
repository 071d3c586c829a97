package ssh_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	server "github.com/gliderlabs/ssh"
	xssh "golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/node/ssh/sshtest"
	"github.com/swdt-dev/swdt/internal/testing/deadline"
)

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
		// $key > id_ed25519 in PowerShell 5.1.
		{"UTF-16", sshtest.Write(t, folder, "wide", "\xff\xfe-\x00-\x00"), ssh.KeyInvalid, "UTF-16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.problem == ssh.KeyTooOpen {
				t.Skip("file modes say nothing")
			}
			e := fails[*ssh.KeyFileError](t, ssh.Target{Host: s.Address, PrivateKey: c.path},
				options(t, s), c.path, c.remedy)
			if e.Problem != c.problem {
				t.Errorf("e.Problem is %q, want %q", e.Problem, c.problem)
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

	e = fails[*ssh.AuthError](t, ssh.Target{Host: s.Address, Password: secret("wrong")}, options(t, s),
		"as Administrator")
	if want := []string{"password", "keyboard-interactive"}; !slices.Equal(e.Tried, want) {
		t.Errorf("tried %q", e.Tried)
	}

	fails[*ssh.AuthError](t, ssh.Target{Host: s.Address}, options(t, s), "no credentials")
}

func TestRejectedLoginSaysWhatTheMachineDoesNotTake(t *testing.T) {
	keys := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{}})
	e := fails[*ssh.AuthError](t, ssh.Target{Host: keys.Address, Password: secret("right")}, options(t, keys),
		"the password (the machine accepts none)", "the machine accepts publickey")
	if strings.Contains(e.Error(), "no credentials") {
		t.Errorf("e.Error() contains %q:\n%s", "no credentials", e.Error())
	}
	passwords := sshtest.Start(t, sshtest.Options{Password: "right"})
	path := sshtest.Write(t, t.TempDir(), "key", sshtest.NewKey(t).PEM(t, ""))
	e = fails[*ssh.AuthError](t, ssh.Target{Host: passwords.Address, PrivateKey: path}, options(t, passwords),
		path+" (the machine accepts no keys)")
	if strings.Contains(e.Error(), "no credentials") {
		t.Errorf("e.Error() contains %q:\n%s", "no credentials", e.Error())
	}
}

// A connection that breaks while the machine checks a key or a password shows nothing about them, so another
// try may succeed.
func TestAConnectionThatBreaksDuringTheLoginIsNotARejection(t *testing.T) {
	key := sshtest.NewKey(t)
	path := sshtest.Write(t, t.TempDir(), "key", key.PEM(t, ""))
	for name, c := range map[string]struct {
		server sshtest.Options
		target ssh.Target
	}{
		"key":         {sshtest.Options{Keys: []xssh.PublicKey{key.Public()}}, ssh.Target{PrivateKey: path}},
		"password":    {sshtest.Options{Password: "right"}, ssh.Target{Password: secret("right")}},
		"interactive": {sshtest.Options{Interactive: "right"}, ssh.Target{Password: secret("right")}},
		"key, then password": {
			sshtest.Options{Keys: []xssh.PublicKey{key.Public()}, Password: "right"},
			ssh.Target{PrivateKey: path, Password: secret("right")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.BreakLogins = true
			s := sshtest.Start(t, c.server)
			c.target.Host = s.Address
			fails[*ssh.HandshakeError](t, c.target, options(t, s), s.Address)
			if len(s.Logins()) == 0 {
				t.Error("the connection broke before the login")
			}
		})
	}
}

func TestAPasswordIsNotSentWhereItIsVisible(t *testing.T) {
	answers := make(chan []string, 1)
	s := startVisible(t, answers)
	o := options(t)
	o.AcceptNewHostKey = true
	fails[*ssh.AuthError](t, ssh.Target{Host: s, Password: secret("right")}, o)
	if got := <-answers; len(got) != 0 {
		t.Errorf("got is %v, want it empty", got)
	}
}

// startVisible serves a prompt whose answer is visible.
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
		o.Timeout = time.Second // long enough to connect on a busy machine
		e := fails[*ssh.TimeoutError](t, ssh.Target{Host: sshtest.ServeSilence(t)}, o, "SSH handshake", "firewall")
		if !errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("the error is %v, want %v", e, context.DeadlineExceeded)
		}
	})
	t.Run("not SSH", func(t *testing.T) {
		fails[*ssh.HandshakeError](t, ssh.Target{Host: sshtest.ServeText(t, "HTTP/1.1 400 Bad Request\r\n\r\n")}, o,
			"SSH server")
	})
	t.Run("hangs up", func(t *testing.T) {
		fails[*ssh.HandshakeError](t, ssh.Target{Host: sshtest.ServeText(t, "")}, o)
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
	address := sshtest.ServeSilence(t)
	o := options(t)
	failed := make(chan error, 1)
	go func() {
		_, err := ssh.Dial(ctx, ssh.Target{Host: address}, o)
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v, want %v", err, context.Canceled)
	}
}

func TestDeadlineOfTheWholeIsATimeout(t *testing.T) {
	ctx, pass := deadline.Context(t.Context())
	_, err := ssh.Dial(ctx, ssh.Target{Host: sshtest.ServeSilence(t, pass)}, options(t))
	var timeout *ssh.TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, timeout)
	}
}
