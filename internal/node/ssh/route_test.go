package ssh_test

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	server "github.com/gliderlabs/ssh"
	xssh "golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/node/ssh/sshtest"
)

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
			t.Errorf("e.User is %q, want %q", e.User, "other")
		}
		closed := sshtest.Closed(t)
		_, closedPort, _ := strings.Cut(closed, ":")
		fails[*ssh.RefusedError](t, ssh.Target{Host: "win1:" + closedPort}, configured(t, full), closed)
	})
	t.Run("a failure names the conditions that swdt does not know", func(t *testing.T) {
		o := configured(t, "Host *\n  User dev\n\nMatch user dev\n  Port 1\n")
		fails[*ssh.LeftOutError](t, ssh.Target{Host: sshtest.Closed(t)}, o, ".ssh/config:4 (Match user dev)")
		closed := configured(t, "Host *\n  User dev\n")
		if _, err := ssh.Dial(t.Context(), ssh.Target{Host: sshtest.Closed(t)}, closed); err == nil ||
			errors.As(err, new(*ssh.LeftOutError)) {
			t.Errorf("a config of which everything is used: %v", err)
		}
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
	t.Run("a pattern of Match that has a comma", func(t *testing.T) {
		works(t, ssh.Target{Host: "win1"}, configured(t, "Match host lin*,win*,!win2\n"+inBlock(full)))
		fails[error](t, ssh.Target{Host: "win2"}, configured(t, "Match host lin*,win*,!win2\n"+inBlock(full)))
	})
	t.Run("a file of Include in quotes", func(t *testing.T) {
		o := configured(t, "")
		for _, line := range []string{`Include "%s"`, `Include none "%s" # both`, `include = "%s"`} {
			file := sshtest.Write(t, o.HomeDir, ".ssh/of the company", full)
			sshtest.Write(t, o.HomeDir, ".ssh/config", fmt.Sprintf(line, file)+"\n")
			works(t, ssh.Target{Host: "win1"}, o)
		}
	})
	t.Run("after an Include, lines are for all hosts again", func(t *testing.T) {
		o := configured(t, "Include parts/* ~/gone ${PARTS}/three\nUser dev\nIdentityFile \"~/keys/win key\"\n")
		o.LookupEnv = func(name string) (string, bool) { return filepath.Join(o.HomeDir, "more"), name == "PARTS" }
		sshtest.Write(t, o.HomeDir, ".ssh/parts/one", "Match host win1\n  Port "+port+"\n")
		sshtest.Write(t, o.HomeDir, ".ssh/parts/two", "Host win2\n  Port 1")
		sshtest.Write(t, o.HomeDir, "more/three", "Host win1\n  HostName "+host)
		works(t, ssh.Target{Host: "win1"}, o)
	})
	t.Run("an Include of a block is for its hosts", func(t *testing.T) {
		o := configured(t, "")
		part := sshtest.Write(t, o.HomeDir, ".ssh/the part", "  User dev\n  IdentityFile \"~/keys/win key\"\n")
		sshtest.Write(t, o.HomeDir, ".ssh/config", fmt.Sprintf("Host win1\n  HostName %s\n  Port %s\n  Include \"%s\"\n"+
			"Host *\n  User other\n", host, port, part))
		works(t, ssh.Target{Host: "win1"}, o)
		fails[*ssh.AuthError](t, ssh.Target{Host: s.Address}, o, "as other")
	})
	t.Run("an Include of itself", func(t *testing.T) {
		fails[*ssh.RouteError](t, ssh.Target{Host: "win1"}, configured(t, "Include config\n"), "does it include itself?")
	})
	t.Run("variables", func(t *testing.T) {
		o := configured(t, strings.ReplaceAll(full, "~/keys", "${KEYS}/${GONE}keys"))
		o.LookupEnv = func(name string) (string, bool) { return o.HomeDir, name == "KEYS" }
		fails[*ssh.AuthError](t, ssh.Target{Host: "win1"}, o)
		sshtest.Write(t, o.HomeDir, ".ssh/config", strings.ReplaceAll(full, "~/keys", "${KEYS}/keys"))
		works(t, ssh.Target{Host: "win1"}, o)
	})
	t.Run("a broken one says where", func(t *testing.T) {
		fails[*ssh.RouteError](t, ssh.Target{Host: "win1"}, configured(t, "Host win1\n  Port many\n"), "many")
		fails[*ssh.RouteError](t, ssh.Target{Host: "win1"}, configured(t, "Match\n"), "config")
	})
}

// inBlock returns the lines of the last block of a config.
func inBlock(config string) string {
	_, block, _ := strings.Cut(config[strings.LastIndex(config, "Host win"):], "\n")
	return block
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
			t.Errorf("e.Host is %v, want %v", e.Host, inner.Address)
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
			t.Errorf("e.Via is %v, want %v", e.Via, inner.Address)
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

func TestNamesAreThoseOfTheWholeRoute(t *testing.T) {
	o := ssh.Options{HomeDir: t.TempDir()}
	sshtest.Write(t, o.HomeDir, ".ssh/config", "Host winbox\n  HostName win7.corp.example\n  ProxyJump ops@gate:2222\n"+
		"Host gate\n  HostName bastion.corp.example\n")
	got := ssh.Names(ssh.Target{Host: "winbox:22", User: "dev"}, o)
	for _, want := range []string{"winbox", "win7.corp.example", "dev", "gate", "bastion.corp.example", "ops"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q are without %s", got, want)
		}
	}
}
