package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	server "github.com/gliderlabs/ssh"
	"github.com/pkg/sftp"

	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/node/ssh/sshtest"
	"github.com/swdt-dev/swdt/internal/testing/deadline"
)

// prompter answers prompts and records them.
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

// options returns options with a home folder of the test's own and an empty environment.
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
	switch {
	case err != nil:
		t.Fatal(err)
	case out.Stdout != "say hello":
		t.Fatalf("out.Stdout is %q, want %q", out.Stdout, "say hello")
	case out.ExitCode != 3:
		t.Fatalf("out.ExitCode is %v, want 3", out.ExitCode)
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
	switch {
	case err != nil:
		t.Fatal(err)
	case string(back) != "ping":
		t.Fatalf("back is %q, want %q", string(back), "ping")
	}
	if code, err := p.ExitCode(t.Context()); code != 7 || err != nil {
		t.Fatalf("got exit code %d, %v", code, err)
	}
	if kept := p.Stderr(); len(kept) != 64<<10 || !strings.HasSuffix(kept, "last words") {
		t.Errorf("kept %d bytes of stderr", len(kept))
	}
}

func TestRunIsBoundedByItsContext(t *testing.T) {
	ctx, pass := deadline.Context(t.Context())
	s := sshtest.Start(t, sshtest.Options{Password: "p", Run: func(session server.Session) {
		pass()
		<-session.Context().Done()
	}})
	c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Run(ctx, "hang"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the error is %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestCutConnectionEndsEverything(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "p", Run: func(session server.Session) {
		<-session.Context().Done()
	}})
	c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Start(t.Context(), "hang")
	if err != nil {
		t.Fatal(err)
	}
	s.BreakConnections()
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

// The machine closes the connection right after the login, before or while the first session opens. A connection that
// has had a session, or that swdt itself has closed, was not dropped.
func TestDroppedAfterTheLogin(t *testing.T) {
	dialed := func(t *testing.T) (*sshtest.Server, *ssh.Client) {
		s := sshtest.Start(t, sshtest.Options{Password: "p", Run: echo})
		c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, User: "admin", Password: secret("p")}, options(t, s))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return s, c
	}
	isDropped := func(t *testing.T, err error, want bool) {
		t.Helper()
		e, dropped := errors.AsType[*ssh.DroppedError](err)
		if dropped != want || err == nil || dropped && e.User != "admin" {
			t.Errorf("the error is %v, a %T; dropped is %v, want %v", err, err, dropped, want)
		}
	}
	for name, open := range map[string]func(*testing.T, *ssh.Client) error{
		"a command": func(t *testing.T, c *ssh.Client) error { _, err := c.Start(t.Context(), "say"); return err },
		"SFTP":      func(t *testing.T, c *ssh.Client) error { _, err := c.SFTP(t.Context()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s, c := dialed(t)
			s.BreakConnections()
			isDropped(t, open(t, c), true)
			<-c.Done()
			isDropped(t, open(t, c), true)
		})
		t.Run(name+" after another", func(t *testing.T) {
			s, c := dialed(t)
			if _, err := c.Run(t.Context(), "say"); err != nil {
				t.Fatal(err)
			}
			s.BreakConnections()
			isDropped(t, open(t, c), false)
		})
		t.Run(name+" after the client's end", func(t *testing.T) {
			_, c := dialed(t)
			c.Close()
			isDropped(t, open(t, c), false)
		})
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
	switch {
	case !errors.As(err, &missing):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, missing)
	case !strings.Contains(err.Error(), "Subsystem sftp"):
		t.Fatalf("err.Error() lacks %q:\n%s", "Subsystem sftp", err.Error())
	}
}

// If a connection allows one session only, further sessions get connections of their own, which end
// with the first.
func TestMoreSessionsThanAConnectionMayHave(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "p", Run: untilClosed, MaxSessions: 1})
	c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	var open []*ssh.Process
	for range 3 {
		p, err := c.Start(t.Context(), "echo")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, p)
	}
	if s.Accepted() != 3 {
		t.Errorf("%d connections", s.Accepted())
	}
	c.Close()
	for _, p := range open {
		select {
		case <-p.Done():
		case <-time.After(time.Minute):
			t.Fatal("a session outlived its connection")
		}
	}
}

// untilClosed runs until its stdin ends.
func untilClosed(s server.Session) { io.Copy(io.Discard, s) }
