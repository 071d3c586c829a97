package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	server "github.com/gliderlabs/ssh"
	xssh "golang.org/x/crypto/ssh"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ssh"
	"github.com/swdt-dev/swdt/internal/ssh/sshtest"
)

func bootID(t *testing.T, n *node.Node) string {
	t.Helper()
	facts, err := n.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return facts.GetBootId()
}

// refuses checks that connecting fails with that cause, as an UnreachableError
// that names the node and has these words.
func refuses[E error](t *testing.T, f *fakeNode, words ...string) E {
	t.Helper()
	n, err := node.Connect(t.Context(), f.doc, f.opts)
	if err == nil {
		n.Close()
		t.Fatal("it connected")
	}
	var unreachable *node.UnreachableError
	if !errors.As(err, &unreachable) || unreachable.Node != "win1" || !strings.HasPrefix(err.Error(), "win1: ") {
		t.Errorf("not an UnreachableError of win1: %v", err)
	}
	var want E
	if !errors.As(err, &want) {
		t.Fatalf("got a %T: %v", unreachable.Err, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q: %v", word, err)
		}
	}
	return want
}

// ---------------------------------------------------------------- install

func TestFirstContactInstallsTheAgentAndTheSecondDoesNot(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	if got := bootID(t, c); got != "boot-1" {
		t.Fatalf("got %q", got)
	}
	root := layout.Root
	want := []string{ // what stood there before must not be run
		"icacls " + root + " /setowner *S-1-5-32-544",
		"icacls " + root + " /inheritance:r /grant:r *S-1-5-32-544:F *S-1-5-18:F",
		"agent",
	}
	if got := f.ran(); !slices.Equal(got, want) {
		t.Errorf("ran\n%s", strings.Join(got, "\n"))
	}
	content, err := f.read(slashed(layout.Agent(f.agent.Hash)))
	if err != nil || content != strings.Repeat(agentContent, 5000) {
		t.Errorf("installed %d bytes, %v", len(content), err)
	}
	if entries, err := f.files.ReadDir(slashed(layout.Agents + `\` + f.agent.Hash)); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
	c.Close()

	before, connections := len(f.ran()), f.ssh.Accepted()
	c = f.connect()
	if got := f.ran()[before:]; !slices.Equal(got, []string{"agent"}) {
		t.Errorf("the second contact ran %q", got)
	}
	if c.Calls() != 0 || c.Connections() != 1 || f.ssh.Accepted() != connections+1 {
		t.Errorf("%d calls, %d connections counted, %d made", c.Calls(), c.Connections(), f.ssh.Accepted()-connections)
	}
	bootID(t, c)
	if c.Calls() != 1 {
		t.Errorf("%d calls counted", c.Calls())
	}
}

func TestFolderThatStoodThereIsTakenOverWholly(t *testing.T) {
	f := newFakeNode(t, faults{})
	f.mkdir(slashed(layout.Root), slashed(layout.Agents))
	f.connect()
	var got []string
	for _, c := range f.ran() {
		if rest, ok := strings.CutPrefix(c, "icacls "); ok {
			got = append(got, strings.TrimPrefix(rest, layout.Root))
		}
	}
	const grant = " /inheritance:r /grant:r *S-1-5-32-544:F *S-1-5-18:F"
	want := []string{
		" /setowner *S-1-5-32-544", " /reset", grant,
		`\agent /setowner *S-1-5-32-544`, `\agent /reset`, `\agent` + grant,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestInstallPrunesOlderAgents(t *testing.T) {
	f := newFakeNode(t, faults{})
	old, guarding := strings.Repeat("01", 32), strings.Repeat("02", 32)
	for _, hash := range []string{old, guarding} {
		f.write(slashed(layout.Agent(hash)), "MZ old")
	}
	f.write(slashed(layout.Agents+`\readme.txt`), "a file")
	f.guardian = strings.ToUpper(`"` + layout.Agent(guarding) + `" guardian 42`)
	f.connect()
	if want := []string{layout.Agents + `\` + old}; !slices.Equal(f.removed, want) {
		t.Errorf("removed %q", f.removed)
	}
}

func TestManyFirstContactsAtOnce(t *testing.T) {
	f := newFakeNode(t, faults{})
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			c, err := node.Connect(t.Context(), f.doc, f.opts)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := c.Machine.Facts(t.Context(), &agentv1.FactsRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if entries, err := f.files.ReadDir(slashed(layout.Agents + `\` + f.agent.Hash)); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestDamagedAgentIsReplaced(t *testing.T) {
	f := newFakeNode(t, faults{})
	f.write(slashed(layout.Agent(f.agent.Hash)), "only half of it")
	bootID(t, f.connect())
}

// Everybody on a node can make the agent's folder first and put a program there,
// even one with the right bytes and open hands.
func TestWhatSomebodyPutThereIsNotRunAtTheFirstContact(t *testing.T) {
	f := newFakeNode(t, faults{})
	right := strings.Repeat(agentContent, 5000)
	for name, planted := range map[string]string{"another program": "MZ another agent, which runs", "the agent itself": right} {
		t.Run(name, func(t *testing.T) {
			f.opts.StateFile = filepath.Join(t.TempDir(), "machines.json")
			before := len(f.ran())
			f.write(slashed(layout.Agent(f.agent.Hash)), planted)

			bootID(t, f.connect())

			commands := f.ran()[before:]
			restricted := slices.Index(commands, "icacls "+layout.Root+" /inheritance:r /grant:r *S-1-5-32-544:F *S-1-5-18:F")
			if started := slices.Index(commands, "agent"); restricted < 0 || started < restricted {
				t.Errorf("ran\n%s", strings.Join(commands, "\n"))
			}
		})
	}
}

func TestAgentOfAnotherHashIsReplaced(t *testing.T) {
	f := newFakeNode(t, faults{})
	f.connect().Close()
	f.write(slashed(layout.Agent(f.agent.Hash)), "MZ another agent, which runs")
	bootID(t, f.connect())
}

// ------------------------------------------------------------------ causes

func TestCausesOnTheNode(t *testing.T) {
	t.Run("a Unix machine", func(t *testing.T) {
		f := newFakeNode(t, faults{unix: true, shell: func(s server.Session) {
			fmt.Fprintln(s.Stderr(), "sh: 1: C:ProgramDataswdt: not found")
			s.Exit(127)
		}})
		refuses[*node.NotWindowsError](t, f, "not look like a Windows node", "sh: 1:", "hostname")
	})
	t.Run("a Unix machine without SFTP", func(t *testing.T) {
		f := newFakeNode(t, faults{noSFTP: true, shell: func(s server.Session) { s.Exit(127) }})
		refuses[*node.NotWindowsError](t, f)
	})
	t.Run("no SFTP", func(t *testing.T) {
		refuses[*ssh.NoSFTPError](t, newFakeNode(t, faults{noSFTP: true}), "Subsystem sftp")
	})
	t.Run("blocked at once", func(t *testing.T) {
		f := newFakeNode(t, faults{blocked: true})
		f.write(slashed(layout.Agent(f.agent.Hash)), strings.Repeat(agentContent, 5000))
		e := refuses[*node.AgentBlockedError](t, f, "blocked by group policy", "AppLocker", `-ExclusionPath C:\ProgramData\swdt\agent`)
		if e.Vanished || e.ExitCode != 5 {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("blocked after the upload", func(t *testing.T) {
		e := refuses[*node.AgentBlockedError](t, newFakeNode(t, faults{blocked: true}), "does not start")
		if e.Vanished || e.ExitCode != 5 {
			t.Errorf("got %+v", e)
		}
	})
	for _, after := range []string{"Put", "Rename"} {
		t.Run("quarantined after "+after, func(t *testing.T) {
			f := newFakeNode(t, faults{disk: diskFaults{quarantine: after}})
			if e := refuses[*node.AgentBlockedError](t, f, "vanished", "Add-MpPreference"); !e.Vanished {
				t.Errorf("got %+v", e)
			}
		})
	}
	t.Run("disk full", func(t *testing.T) {
		refuses[*node.DiskFullError](t, newFakeNode(t, faults{disk: diskFaults{full: true}}), "disk is full", "drive C:")
	})
	t.Run("writes fail", func(t *testing.T) {
		refuses[*node.InstallError](t, newFakeNode(t, faults{disk: diskFaults{broken: true}}), "put the agent on the node")
	})
	t.Run("damaged on the way", func(t *testing.T) {
		f := newFakeNode(t, faults{disk: diskFaults{corrupts: true}})
		refuses[*node.InstallError](t, f, "not what was sent")
		if entries, err := f.files.ReadDir(slashed(layout.Agents + `\` + f.agent.Hash)); err != nil || len(entries) != 0 {
			t.Errorf("left %v, %v", entries, err)
		}
	})
	t.Run("no administrator", func(t *testing.T) {
		e := refuses[*node.NotAdministratorError](t, newFakeNode(t, faults{noAdmin: true}), "Access is denied", "administrator")
		if !strings.Contains(e.Attempt, layout.Root) {
			t.Errorf("got %+v", e)
		}
		refuses[*node.NotAdministratorError](t, newFakeNode(t, faults{disk: diskFaults{denied: true}}), "make the folder")
	})
	t.Run("a trap", func(t *testing.T) {
		f := newFakeNode(t, faults{})
		f.mkdir("/C:/elsewhere")
		if err := f.files.Symlink("/C:/elsewhere", slashed(layout.Root)); err != nil {
			t.Fatal(err)
		}
		refuses[*node.LinkError](t, f, layout.Root, "link")
		if entries, err := f.files.ReadDir("/C:/elsewhere"); err != nil || len(entries) != 0 {
			t.Errorf("left %v, %v", entries, err)
		}
	})
	t.Run("a file in the way", func(t *testing.T) {
		f := newFakeNode(t, faults{})
		f.write(slashed(layout.Root), "file")
		refuses[*node.InstallError](t, f, "a file is in its place")
	})
	t.Run("mute", func(t *testing.T) {
		f := newFakeNode(t, faults{mute: true})
		f.write(slashed(layout.Agent(f.agent.Hash)), strings.Repeat(agentContent, 5000))
		f.opts.AgentTimeout = 50 * time.Millisecond
		refuses[*node.NoAnswerError](t, f, "did not answer")
	})
	t.Run("not who it says", func(t *testing.T) {
		refuses[*node.AgentBlockedError](t, newFakeNode(t, faults{otherAgent: true}))
	})
}

func TestCausesOnTheWay(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		f := newFakeNode(t, faults{})
		f.doc.Node.Spec.Credentials.Hostname = sshtest.Closed(t)
		refuses[*ssh.RefusedError](t, f)
	})
	t.Run("unknown host", func(t *testing.T) {
		f := newFakeNode(t, faults{})
		f.opts.KnownHosts = f.opts.HomeDir + "/none"
		refuses[*ssh.HostKeyUnknownError](t, f)
		f.opts.AcceptNewHostKey = true
		bootID(t, f.connect())
	})
	t.Run("wrong password", func(t *testing.T) {
		f := newFakeNode(t, faults{})
		f.doc.Node.Spec.Credentials.Password = "wrong"
		refuses[*ssh.AuthError](t, f)
		if len(f.ran()) != 0 {
			t.Errorf("ran %q", f.ran())
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		f := newFakeNode(t, faults{mute: true})
		f.write(slashed(layout.Agent(f.agent.Hash)), strings.Repeat(agentContent, 5000))
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := node.Connect(ctx, f.doc, f.opts)
			failed <- err
		}()
		for len(f.ran()) == 0 { // until the agent was started
			if ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
			time.Sleep(time.Millisecond)
		}
		cancel()
		err := <-failed
		var unreachable *node.UnreachableError
		if !errors.Is(err, context.Canceled) || errors.As(err, &unreachable) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestSecretsComeFromWhereTheNodeFileSays(t *testing.T) {
	f := newFakeNode(t, faults{})
	f.doc.File = t.TempDir() + "/node.yaml"
	credentials := &f.doc.Node.Spec.Credentials
	credentials.Password = ""

	credentials.PasswordFrom = &v1alpha1.SecretSource{Env: "NODE_PASSWORD"}
	refuses[*ssh.SecretError](t, f, "NODE_PASSWORD is not set")
	f.opts.LookupEnv = func(name string) (string, bool) { return "right", name == "NODE_PASSWORD" }
	bootID(t, f.connect())

	credentials.PasswordFrom = &v1alpha1.SecretSource{File: "secret.txt"}
	refuses[*ssh.SecretError](t, f, "secret.txt")
	sshtest.Write(t, f.doc.File[:strings.LastIndex(f.doc.File, "/")], "secret.txt", "right\r\nsecond line\n")
	bootID(t, f.connect())
}

// ------------------------------------------------------------------- calls

func TestErrorsAreThoseOfTheHost(t *testing.T) {
	c := newFakeNode(t, faults{}).connect()
	_, err := c.Machine.Reboot(t.Context(), &agentv1.RebootRequest{})
	if !errors.Is(err, host.ErrPermission) || err.Error() != "reboot: "+host.ErrPermission.Error() {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Machine.Lock(ctx, &agentv1.LockRequest{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	var lost *node.LostError
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := c.Machine.Lock(ctx, &agentv1.LockRequest{}); !errors.Is(err, context.Canceled) || errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
}

func TestCutConnection(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	stream, err := c.Files.Read(t.Context(), &agentv1.ReadRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Machine.Lock(context.Background(), &agentv1.LockRequest{})
		waiting <- err
	}()
	f.ssh.Cut()

	_, streamErr := stream.Recv()
	_, later := c.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	for name, err := range map[string]error{"stream": streamErr, "call": <-waiting, "later call": later} {
		var lost *node.LostError
		if !errors.As(err, &lost) || !strings.HasPrefix(err.Error(), "win1: lost the connection") {
			t.Errorf("%s: got %T %v", name, err, err)
		}
	}

	if err := c.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if bootID(t, c) != "boot-1" || c.Connections() != 2 {
		t.Errorf("%d connections", c.Connections())
	}
}

func TestDyingAgentsLastWordsAreKept(t *testing.T) {
	f := newFakeNode(t, faults{lastWords: "panic: out of luck"})
	c := f.connect()
	bootID(t, c)
	f.killAgent()
	_, err := c.Machine.Lock(t.Context(), &agentv1.LockRequest{})
	var lost *node.LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "exit code 9") || !strings.Contains(err.Error(), "out of luck") {
		t.Fatalf("got %v", err)
	}
}

func TestCloseEndsTheAgentAndCalls(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	bootID(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal("closed twice:", err)
	}
	_, err := c.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	var lost *node.LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "closed") {
		t.Fatalf("got %v", err)
	}
}

func TestReconnectThatFailsCanBeTriedAgain(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	f.setMute(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var unreachable *node.UnreachableError
	if err := c.Reconnect(ctx); !errors.As(err, &unreachable) {
		t.Fatalf("got %v", err)
	}
	f.setMute(false)
	if err := c.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	bootID(t, c)
}

func TestLargeMessagesAndStreams(t *testing.T) {
	c := newFakeNode(t, faults{}).connect()
	long := strings.Repeat("x", 3<<20)
	if _, err := c.Machine.Reboot(t.Context(), &agentv1.RebootRequest{Reason: long}); !errors.Is(err, host.ErrPermission) {
		t.Fatalf("got %v", err)
	}
	stream, err := c.Files.Write(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.CloseAndRecv(); err == nil || err == io.EOF {
		t.Fatalf("got %v", err)
	}
}

func TestBulkDataHasAChannelOfItsOwn(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	before, connections, calls := len(f.ran()), f.ssh.Accepted(), c.Calls()
	for range 2 { // the second finds it open
		bulk, err := c.Bulk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stream, err := bulk.Read(t.Context(), &agentv1.ReadRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.ran()[before:]; !slices.Equal(got, []string{"agent"}) || f.ssh.Accepted() != connections {
		t.Errorf("bulk data ran %q on %d more connections", got, f.ssh.Accepted()-connections)
	}
	if c.Calls() != calls+2 || c.Connections() != 1 {
		t.Errorf("%d calls and %d connections counted", c.Calls()-calls, c.Connections())
	}
	bootID(t, c)

	// With the connection it ends, and there is another on the next.
	old, err := c.Bulk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lost *node.LostError
	if _, err := old.Stat(t.Context(), &agentv1.StatRequest{}); !errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Bulk(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Bulk(t.Context()); !errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
}

func TestWithoutASecondAgentBulkDataGoesWithTheRest(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	f.setMute(true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Bulk(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	bootID(t, c) // the connection is as good as before
}

func TestAwaitReboot(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	old := bootID(t, c)
	f.ssh.Cut()
	f.setBootID("boot-2")
	if err := c.AwaitReboot(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if got := bootID(t, c); got != "boot-2" {
		t.Errorf("got %q", got)
	}
}

func TestKeyLogin(t *testing.T) {
	f := newFakeNode(t, faults{})
	key := sshtest.NewKey(t)
	jump := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public()}, Forward: true})
	f.opts.KnownHosts = sshtest.Trust(t, f.ssh, jump)
	sshtest.Write(t, f.opts.HomeDir, ".ssh/id_ed25519", key.PEM(t, ""))
	f.doc.Node.Spec.Credentials.ProxyJump = "dev@" + jump.Address
	bootID(t, f.connect())
	if jump.Accepted() != 1 {
		t.Errorf("%d connections to the jump host", jump.Accepted())
	}
}
