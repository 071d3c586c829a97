package ssh_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/node/ssh/sshtest"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
)

func TestUnknownHost(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "right", Run: echo})
	target := ssh.Target{Host: s.Address, Password: secret("right")}
	// unknown returns options with a known_hosts that does not exist yet.
	unknown := func(t *testing.T) ssh.Options {
		o := options(t)
		o.KnownHosts = filepath.Join(o.HomeDir, ".ssh", "known_hosts")
		return o
	}

	t.Run("nobody to ask", func(t *testing.T) {
		logins := len(s.Logins())
		e := fails[*ssh.HostKeyUnknownError](t, target, unknown(t),
			s.Address, s.Fingerprint(), "--accept-new-host-key", "hostKey: SHA256:")
		switch {
		case e.Type != xssh.KeyAlgoED25519:
			t.Errorf("e.Type is %v, want %v", e.Type, xssh.KeyAlgoED25519)
		case e.Fingerprint != s.Fingerprint():
			t.Errorf("e.Fingerprint is %v, want %v", e.Fingerprint, s.Fingerprint())
		}
		if len(s.Logins()) != logins {
			t.Error("a login was tried on a machine that is not trusted")
		}
	})
	t.Run("declined", func(t *testing.T) {
		o := unknown(t)
		p := &prompter{yes: false}
		o.Prompt = p
		e := fails[*ssh.HostKeyUnknownError](t, target, o, "not accepted")
		switch {
		case !e.Declined:
			t.Error("e.Declined is false, want true")
		case p.times() != 1:
			t.Errorf("p.times() is %v, want 1", p.times())
		}
		if _, err := os.Stat(o.KnownHosts); err == nil {
			t.Error("known_hosts was written")
		}
	})
	t.Run("accepted, and known from then on", func(t *testing.T) {
		o := unknown(t)
		p := &prompter{yes: true}
		o.Prompt = p
		works(t, target, o)
		works(t, target, o)
		if p.times() != 1 {
			t.Fatalf("asked %q", p.asked)
		}
		for _, word := range []string{s.Address, s.Fingerprint(), xssh.KeyAlgoED25519, o.KnownHosts} {
			if !strings.Contains(p.asked[0], word) {
				t.Errorf("the question lacks %q: %s", word, p.asked[0])
			}
		}
		info, err := os.Stat(o.KnownHosts)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("known_hosts: %v, %v", info.Mode(), err)
		}
	})
	t.Run("taking the time to answer costs no timeout", func(t *testing.T) {
		o := unknown(t)
		o.Timeout = 4 * time.Second // long enough for a handshake on a busy machine
		o.Prompt = slowYes{&prompter{yes: true}, o.Timeout + o.Timeout/4}
		works(t, target, o)
	})
	t.Run("accepted by flag", func(t *testing.T) {
		o := unknown(t)
		o.AcceptNewHostKey = true
		works(t, target, o)
		o.AcceptNewHostKey = false
		works(t, target, o)
	})
	t.Run("a file whose last line has no end", func(t *testing.T) {
		o := unknown(t)
		line := "other.example " + strings.TrimSpace(string(xssh.MarshalAuthorizedKey(sshtest.NewKey(t).Public())))
		o.KnownHosts = sshtest.Write(t, o.HomeDir, "known", line)
		o.AcceptNewHostKey = true
		works(t, target, o)
		data, err := os.ReadFile(o.KnownHosts)
		switch {
		case err != nil:
			t.Error(err)
		case !strings.HasPrefix(string(data), line+"\n[127.0.0.1]:"):
			t.Errorf("data does not begin with %q:\n%s", line+"\n[127.0.0.1]:", string(data))
		}
	})
}

type slowYes struct {
	*prompter
	after time.Duration
}

func (s slowYes) Confirm(ctx context.Context, question string) (bool, error) {
	select {
	case <-time.After(s.after):
	case <-ctx.Done():
	}
	return s.prompter.Confirm(ctx, question)
}

// Without a home folder in the environment, the current folder's .ssh, which others
// may have written, is not the user's.
func TestTheCurrentFolderIsNoHome(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "p"})
	here := t.TempDir()
	workdir.Change(t, here)
	trust, err := os.ReadFile(sshtest.Trust(t, s))
	if err != nil {
		t.Fatal(err)
	}
	sshtest.Write(t, here, ".ssh/known_hosts", string(trust))
	sshtest.Write(t, here, ".ssh/config", "Host *\n  ProxyJump 127.0.0.1:1\n")
	for _, home := range []string{"", ".", "./"} {
		t.Setenv("HOME", home)
		t.Setenv("USERPROFILE", home)
		c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, ssh.Options{})
		if err == nil {
			c.Close()
			t.Fatalf("HOME=%q: trusted", home)
		}
		var unknown *ssh.HostKeyUnknownError
		if errors.As(err, &unknown) && !filepath.IsAbs(unknown.KnownHosts) {
			t.Errorf("HOME=%q: looked in %s", home, unknown.KnownHosts)
		}
		var jump *ssh.JumpError
		if errors.As(err, &jump) {
			t.Errorf("HOME=%q: believed the config: %v", home, err)
		}
	}
}

func TestManyNewHostsAtOnce(t *testing.T) {
	o := options(t)
	o.KnownHosts = filepath.Join(o.HomeDir, "known")
	o.AcceptNewHostKey = true
	var all sync.WaitGroup
	var servers []*sshtest.Server
	for range 10 {
		s := sshtest.Start(t, sshtest.Options{Password: "p"})
		servers = append(servers, s)
		all.Go(func() {
			c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, o)
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	all.Wait()
	data, err := os.ReadFile(o.KnownHosts)
	switch {
	case err != nil:
		t.Fatal(err)
	case strings.Count(string(data), "\n") != len(servers):
		t.Fatalf("%q occurs %d times in data, want %d:\n%s", "\n", strings.Count(string(data), "\n"),
			len(servers), string(data))
	}
	o.AcceptNewHostKey = false
	for _, s := range servers {
		c, err := ssh.Dial(t.Context(), ssh.Target{Host: s.Address, Password: secret("p")}, o)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

func TestChangedHostKey(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "right"})
	host, port, _ := strings.Cut(s.Address, ":")
	old := sshtest.NewKey(t)
	line := fmt.Sprintf("[%s]:%s %s", host, port, xssh.MarshalAuthorizedKey(old.Public()))
	target := ssh.Target{Host: s.Address, Password: secret("right")}

	t.Run("names file and line", func(t *testing.T) {
		o := options(t)
		o.KnownHosts = sshtest.Write(t, t.TempDir(), "known", "# comment\n\n"+line)
		o.AcceptNewHostKey = true // applies to unknown hosts only
		o.Prompt = &prompter{yes: true}
		e := fails[*ssh.HostKeyChangedError](t, target, o, o.KnownHosts+":3", s.Fingerprint(), "nothing was sent")
		switch {
		case len(e.Known) != 1:
			t.Errorf("e.Known has %d elements, want 1: %v", len(e.Known), e.Known)
		case e.Known[0].Line != 3:
			t.Errorf("e.Known[0].Line is %v, want 3", e.Known[0].Line)
		case e.Known[0].Fingerprint != xssh.FingerprintSHA256(old.Public()):
			t.Errorf("e.Known[0].Fingerprint is %v, want %v", e.Known[0].Fingerprint,
				xssh.FingerprintSHA256(old.Public()))
		}
	})
	t.Run("to a key of another type", func(t *testing.T) {
		other := ecdsaKey(t)
		o := options(t)
		o.KnownHosts = sshtest.Write(t, t.TempDir(), "known",
			fmt.Sprintf("[%s]:%s %s", host, port, xssh.MarshalAuthorizedKey(other.PublicKey())))
		o.AcceptNewHostKey = true
		e := fails[*ssh.HostKeyChangedError](t, target, o, o.KnownHosts+":1", s.Fingerprint(), "nothing was sent")
		switch {
		case len(e.Known) != 1:
			t.Errorf("e.Known has %d elements, want 1: %v", len(e.Known), e.Known)
		case e.Type == e.Known[0].Type:
			t.Errorf("e.Type is %v, want anything but %v", e.Type, e.Known[0].Type)
		}
	})
	t.Run("revoked", func(t *testing.T) {
		o := options(t)
		key := xssh.MarshalAuthorizedKey(s.HostKeys[0].PublicKey())
		o.KnownHosts = sshtest.Write(t, t.TempDir(), "known",
			fmt.Sprintf("[%s]:%s %s@revoked * %s", host, port, key, key))
		for _, pin := range []string{"", s.Fingerprint()} {
			target := target
			target.HostKey = pin
			e := fails[*ssh.HostKeyChangedError](t, target, o, o.KnownHosts+":2", "revoked",
				"leave the line", "new keys")
			switch {
			case !e.Revoked:
				t.Error("e.Revoked is false, want true")
			case strings.Contains(e.Error(), "remove that line"):
				t.Errorf("e.Error() contains %q:\n%s", "remove that line", e.Error())
			}
		}
	})
	if len(s.Logins()) != 0 {
		t.Errorf("logins were tried: %q", s.Logins())
	}
}

func ecdsaKey(t *testing.T) xssh.Signer {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := xssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestBrokenKnownHosts(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Password: "p"})
	o := options(t)
	o.KnownHosts = sshtest.Write(t, t.TempDir(), "known", "nonsense\n")
	fails[*ssh.KnownHostsError](t, ssh.Target{Host: s.Address, Password: secret("p")}, o, o.KnownHosts)
}

func TestPinnedHostKey(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	second, err := xssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s := sshtest.Start(t, sshtest.Options{
		Password: "p", Run: echo, HostKeys: []xssh.Signer{second, sshtest.NewKey(t).Signer},
	})
	t.Run("unknown: the key that ssh would show", func(t *testing.T) {
		e := fails[*ssh.HostKeyUnknownError](t, ssh.Target{Host: s.Address}, options(t))
		if e.Type != xssh.KeyAlgoED25519 {
			t.Errorf("showed %s", e.Type)
		}
	})
	target := ssh.Target{Host: s.Address, Password: secret("p")}
	for _, key := range s.HostKeys {
		t.Run(key.PublicKey().Type(), func(t *testing.T) {
			target := target
			target.HostKey = xssh.FingerprintSHA256(key.PublicKey())
			works(t, target, options(t))
		})
	}
	t.Run("another machine", func(t *testing.T) {
		target := target
		target.HostKey = xssh.FingerprintSHA256(sshtest.NewKey(t).Public())
		logins := len(s.Logins())
		o := options(t, s) // known_hosts has the key, but the pin decides
		e := fails[*ssh.HostKeyChangedError](t, target, o, target.HostKey, "spec.credentials.hostKey")
		if e.Pinned != target.HostKey || len(s.Logins()) != logins {
			t.Errorf("got %+v after %d logins", e, len(s.Logins())-logins)
		}
	})
}

func TestKnownHostsDecidesWhichOfSeveralKeysIsAskedFor(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	second, err := xssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s := sshtest.Start(t, sshtest.Options{
		Password: "p", Run: echo, HostKeys: []xssh.Signer{sshtest.NewKey(t).Signer, second},
	})
	host, port, _ := strings.Cut(s.Address, ":")
	for _, key := range s.HostKeys {
		o := options(t)
		o.KnownHosts = sshtest.Write(t, t.TempDir(), "known",
			fmt.Sprintf("[%s]:%s %s", host, port, xssh.MarshalAuthorizedKey(key.PublicKey())))
		works(t, ssh.Target{Host: s.Address, Password: secret("p")}, o)
	}
}

// ------------------------------------------------------ SSH config and jumps
