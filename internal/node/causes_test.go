package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	server "github.com/gliderlabs/ssh"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/node/ssh/sshtest"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// refuses checks that connecting fails with the cause E, as an UnreachableError that has the node,
// does not print the node's name and contains these words.
func refuses[E error](t *testing.T, f *fakeNode, words ...string) E {
	t.Helper()
	n, err := node.Connect(t.Context(), f.doc, f.opts)
	if err == nil {
		n.Close()
		t.Fatal("it connected")
	}
	var unreachable *node.UnreachableError
	switch {
	case !errors.As(err, &unreachable):
		t.Errorf("not an UnreachableError of win1: the error is %v, a %T, want a %T", err, err, unreachable)
	case unreachable.Node != "win1":
		t.Errorf("not an UnreachableError of win1: unreachable.Node is %q, want %q", unreachable.Node, "win1")
	case strings.Contains(err.Error(), "win1"):
		t.Errorf("not an UnreachableError of win1: err.Error() contains %q:\n%s", "win1", err.Error())
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
		e := refuses[*node.AgentBlockedError](t, f, "blocked by group policy", "AppLocker",
			`-ExclusionPath C:\ProgramData\swdt\agent`)
		switch {
		case e.Vanished:
			t.Error("e.Vanished is true, want false")
		case e.ExitCode != 5:
			t.Errorf("e.ExitCode is %v, want 5", e.ExitCode)
		}
	})
	t.Run("blocked after the upload", func(t *testing.T) {
		e := refuses[*node.AgentBlockedError](t, newFakeNode(t, faults{blocked: true}), "does not start")
		switch {
		case e.Vanished:
			t.Error("e.Vanished is true, want false")
		case e.ExitCode != 5:
			t.Errorf("e.ExitCode is %v, want 5", e.ExitCode)
		}
	})
	for _, after := range []string{"Put"} {
		t.Run("quarantined after "+after, func(t *testing.T) {
			f := newFakeNode(t, faults{disk: diskFaults{quarantine: after}})
			if e := refuses[*node.AgentBlockedError](t, f, "vanished", "Add-MpPreference"); !e.Vanished {
				t.Error("e.Vanished is false, want true")
			}
		})
	}
	t.Run("a profile in which every user may write", func(t *testing.T) {
		refuses[*node.InstallError](t, newFakeNode(t, faults{disk: diskFaults{shared: true}}), "every user", profile)
	})
	t.Run("a shell that moves, and a profile that shells would interpret", func(t *testing.T) {
		f := newFakeNode(t, faults{profile: `C:\Users\John Smith`, startsIn: `C:\Users\Public`})
		refuses[*node.InstallError](t, f, "/C:/Users/Public", "shell's profile")
		if ran := f.ran(); len(ran) > 0 {
			t.Errorf("ran %q", ran)
		}
	})
	t.Run("a POSIX shell that knows no Windows paths", func(t *testing.T) {
		f := newFakeNode(t, faults{shell: func(s server.Session) {
			if strings.Contains(s.RawCommand(), "cmd.exe /u /c 'set USERPROFILE'") {
				answerProfile(t, s, profile)
				return
			}
			fmt.Fprintf(s.Stderr(), "bash: line 1: %s: No such file or directory\n", s.RawCommand())
			s.Exit(127)
		}})
		e := refuses[*node.ShellError](t, f, "POSIX shell", "DefaultShell")
		if !strings.Contains(e.Output, "C:/Users/Administrator/swdt-agent-") {
			t.Errorf("the last try was %q, want one with slashes", e.Output)
		}
	})
	t.Run("a shell that does not run cmd", func(t *testing.T) {
		f := newFakeNode(t, faults{shell: func(s server.Session) { fmt.Fprintln(s, "Bonjour !") }})
		refuses[*node.InstallError](t, f, "USERPROFILE", "Bonjour")
	})
	t.Run("a program that does not load", func(t *testing.T) {
		f := newFakeNode(t, faults{shell: func(s server.Session) {
			if s.RawCommand() == askProfile {
				answerProfile(t, s, profile)
				return
			}
			s.Exit(0xC0000135 - 1<<32) // the library takes an int, and sends its lower 32 bits
		}})
		refuses[*node.AgentBlockedError](t, f, "0xC0000135, a DLL is missing")
	})
	t.Run("disk full", func(t *testing.T) {
		refuses[*carrier.DiskFullError](t, newFakeNode(t, faults{disk: diskFaults{full: true}}),
			"the node's disk is full", profile+`\swdt-agent-`, "drive C:")
	})
	t.Run("writes fail", func(t *testing.T) {
		refuses[*node.InstallError](t, newFakeNode(t, faults{disk: diskFaults{broken: true}}),
			"put the agent on the node")
	})
	t.Run("damaged on the way", func(t *testing.T) {
		f := newFakeNode(t, faults{disk: diskFaults{corrupts: true}})
		refuses[*node.InstallError](t, f, "not what was sent")
		if left := f.uploaded(); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
	t.Run("no administrator", func(t *testing.T) {
		e := refuses[*node.NotAdministratorError](t, newFakeNode(t, faults{noAdmin: true}),
			"access is denied", "administrator")
		if !strings.Contains(e.Error(), layout.Root) {
			t.Errorf("e.Error() lacks %q:\n%s", layout.Root, e.Error())
		}
		refuses[*node.NotAdministratorError](t, newFakeNode(t, faults{disk: diskFaults{denied: true}}),
			"put the agent on the node")
	})
	t.Run("a trap", func(t *testing.T) {
		f := newFakeNode(t, faults{})
		f.mkdir("/C:/elsewhere")
		if err := f.files.Symlink("/C:/elsewhere", slashed(layout.Root)); err != nil {
			t.Fatal(err)
		}
		refuses[*node.ForeignFolderError](t, f, layout.Root)
		if entries, err := f.files.ReadDir("/C:/elsewhere"); err != nil || len(entries) != 0 {
			t.Errorf("left %v, %v", entries, err)
		}
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
		started := make(chan struct{}, 1)
		f := newFakeNode(t, faults{shell: func(s server.Session) {
			started <- struct{}{} // one command; the next one waits for its end
			<-s.Context().Done()
		}})
		f.write(slashed(layout.Agent(f.agent.Hash)), strings.Repeat(agentContent, 5000))
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := node.Connect(ctx, f.doc, f.opts)
			failed <- err
		}()
		<-started
		cancel()
		err := <-failed
		var unreachable *node.UnreachableError
		switch {
		case !errors.Is(err, context.Canceled):
			t.Fatalf("the error is %v, want %v", err, context.Canceled)
		case errors.As(err, &unreachable):
			t.Fatal("errors.As(err, &unreachable) is true, want false")
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
