package ssh_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	server "github.com/gliderlabs/ssh"
	xssh "golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/node/ssh/sshtest"
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
		if e.Type != xssh.KeyAlgoED25519 || e.Fingerprint != s.Fingerprint() {
			t.Errorf("got %+v", e)
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
		if !e.Declined || p.times() != 1 {
			t.Errorf("got %+v after %q", e, p.asked)
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
		o.Timeout = time.Second
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
		if err != nil || !strings.HasPrefix(string(data), line+"\n[127.0.0.1]:") {
			t.Errorf("got %q, %v", data, err)
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
	t.Chdir(here)
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
	if err != nil || strings.Count(string(data), "\n") != len(servers) {
		t.Fatalf("got %q, %v", data, err)
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
		if len(e.Known) != 1 || e.Type == e.Known[0].Type {
			t.Errorf("got %+v", e)
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
			if !e.Revoked || strings.Contains(e.Error(), "remove that line") {
				t.Errorf("got %v", e)
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

func TestSSHConfig(t *testing.T) {
	key := sshtest.NewKey(t)
	s := sshtest.Start(t, sshtest.Options{User: "dev", Keys: []xssh.PublicKey{key.Public()}, Run: echo})
	host, port, _ := strings.Cut(s.Address, ":")
	configured := func(t *testing.T, text string) ssh.Options {
		o := options(t, s)
		sshtest.Write(t, o.HomeDir, "keys/win key", key.PEM(t, ""))
		sshtest.Write(t, o.HomeDir, ".ssh/config", text)
		return o
	}
	full := fmt.Sprintf("Match exec \"never run this\"\n  User nobody\nHost win*\n  HostName %s\n  Port %s\n  User "+
		"dev\n  IdentityFile \"~/keys/win key\"\n", host, port)

	t.Run("a host of the config", func(t *testing.T) {
		works(t, ssh.Target{Host: "win1"}, configured(t, full))
	})
	t.Run("CRLF", func(t *testing.T) {
		works(t, ssh.Target{Host: "win1"}, configured(t, strings.ReplaceAll(full, "\n", "\r\n")))
	})
	t.Run("tokens", func(t *testing.T) {
		works(t, ssh.Target{Host: host}, configured(t,
			fmt.Sprintf("Host *\n  HostName %%h\n  Port %s\n  User dev\n  IdentityFile \"%%d/keys/win key\"\n", port)))
	})
	t.Run("the node file comes first", func(t *testing.T) {
		e := fails[*ssh.AuthError](t, ssh.Target{Host: "win1", User: "other"}, configured(t, full), "as other")
		if e.User != "other" {
			t.Errorf("got %+v", e)
		}
		closed := sshtest.Closed(t)
		_, closedPort, _ := strings.Cut(closed, ":")
		fails[*ssh.RefusedError](t, ssh.Target{Host: "win1:" + closedPort}, configured(t, full), closed)
	})
	t.Run("IdentitiesOnly leaves the SSH agent alone", func(t *testing.T) {
		o := configured(t, "Host *\n  IdentitiesOnly yes\n  User dev\n")
		o.LookupEnv = agentWith(t, key)
		fails[*ssh.AuthError](t, ssh.Target{Host: s.Address}, o)
	})
	t.Run("IdentityAgent", func(t *testing.T) {
		found := agentWith(t, key)
		socket, _ := found("SSH_AUTH_SOCK")
		works(t, ssh.Target{Host: s.Address}, configured(t, "Host *\n  User dev\n  IdentityAgent "+socket+"\n"))
	})
	t.Run("a broken one says where", func(t *testing.T) {
		fails[*ssh.RouteError](t, ssh.Target{Host: "win1"}, configured(t, "Host win1\n  Port many\n"), "many")
		fails[*ssh.RouteError](t, ssh.Target{Host: "win1"}, configured(t, "Match\n"), "config")
	})
}

func TestJumpHosts(t *testing.T) {
	key := sshtest.NewKey(t)
	node := sshtest.Start(t, sshtest.Options{Password: "right", Run: echo})
	inner := sshtest.Start(t, sshtest.Options{User: "in", Keys: []xssh.PublicKey{key.Public()}, Forward: true})
	outer := sshtest.Start(t, sshtest.Options{User: "out", Keys: []xssh.PublicKey{key.Public()}, Forward: true})
	closed := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public()}})
	base := func(t *testing.T, trusted ...*sshtest.Server) ssh.Options {
		if trusted == nil {
			trusted = []*sshtest.Server{node, inner, outer, closed}
		}
		o := options(t, trusted...)
		sshtest.Write(t, o.HomeDir, ".ssh/id_ed25519", key.PEM(t, ""))
		return o
	}
	target := ssh.Target{Host: node.Address, Password: secret("right")}
	over := func(hosts ...string) ssh.Target {
		t := target
		t.ProxyJump = strings.Join(hosts, ",")
		return t
	}

	t.Run("one", func(t *testing.T) {
		works(t, over("in@"+inner.Address), base(t))
	})
	t.Run("two", func(t *testing.T) {
		before := outer.Accepted()
		works(t, over("out@"+outer.Address, " in@"+inner.Address), base(t))
		if outer.Accepted() != before+1 {
			t.Error("the outer one was passed by")
		}
	})
	t.Run("from the SSH config, which chains them", func(t *testing.T) {
		o := base(t)
		sshtest.Write(t, o.HomeDir, ".ssh/config", strings.Join([]string{
			"Host 127.0.0.1", "  ProxyJump inner",
			"Host inner", hostPort(inner), "  User in", "  ProxyJump outer",
			"Host outer", hostPort(outer), "  User out",
		}, "\n"))
		before := outer.Accepted()
		works(t, target, o)
		if outer.Accepted() != before+1 {
			t.Error("the outer one was passed by")
		}
	})
	t.Run("the node's password is not for the jump host", func(t *testing.T) {
		asks := sshtest.Start(t, sshtest.Options{Password: "right", Forward: true})
		o := base(t, node, asks)
		fails[*ssh.JumpError](t, over(asks.Address), o, asks.Address)
		for _, login := range asks.Logins() {
			if strings.HasPrefix(login, "password") {
				t.Errorf("logins: %q", asks.Logins())
			}
		}
	})
	t.Run("the failing one is named", func(t *testing.T) {
		e := fails[*ssh.JumpError](t, over("out@"+outer.Address, "wrong@"+inner.Address), base(t), inner.Address)
		if e.Host != inner.Address {
			t.Errorf("got %s", e.Host)
		}
		fails[*ssh.AuthError](t, over("wrong@"+inner.Address), base(t))
		fails[*ssh.JumpError](t, over("in@"+sshtest.Closed(t)), base(t), "connection refused")
		fails[*ssh.JumpError](t, over("in@"+inner.Address), base(t, node), inner.Address, "not a known host")
	})
	t.Run("one that does not forward", func(t *testing.T) {
		fails[*ssh.NoForwardingError](t, over("any@"+closed.Address), base(t), closed.Address, "AllowTcpForwarding")
	})
	t.Run("a node that the last one cannot reach", func(t *testing.T) {
		target := over("in@" + inner.Address)
		target.Host = sshtest.Closed(t)
		e := fails[*ssh.NoRouteError](t, target, base(t), "from the jump host")
		if e.Via != inner.Address {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a circle", func(t *testing.T) {
		o := base(t)
		sshtest.Write(t, o.HomeDir, ".ssh/config", "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n")
		fails[*ssh.RouteError](t, over("a"), o, "circle")
	})
	t.Run("the broken jump host ends the connection", func(t *testing.T) {
		c, err := ssh.Dial(t.Context(), over("in@"+inner.Address), base(t))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		inner.BreakConnections()
		<-c.Done()
	})
}

func hostPort(s *sshtest.Server) string {
	host, port, _ := strings.Cut(s.Address, ":")
	return "  HostName " + host + "\n  Port " + port
}

func TestIPv6(t *testing.T) {
	srv := &server.Server{Handler: echo, PasswordHandler: func(server.Context, string) bool { return true }}
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	served := make(chan struct{})
	go func() { srv.Serve(listener); close(served) }()
	t.Cleanup(func() { srv.Close(); <-served })
	o := options(t)
	o.KnownHosts = filepath.Join(o.HomeDir, "known")
	o.AcceptNewHostKey = true
	works(t, ssh.Target{Host: listener.Addr().String(), Password: secret("p")}, o)
	o.AcceptNewHostKey = false
	works(t, ssh.Target{Host: listener.Addr().String(), Password: secret("p")}, o)
}
