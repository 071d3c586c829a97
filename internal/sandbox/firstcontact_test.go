package sandbox_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	nodessh "github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
)

// public is a folder in which ordinary users may write.
const public = `C:\Users\Public`

// connectTo makes a first contact with a node.
func connectTo(t *testing.T, s *sandboxed, o node.Options) error {
	t.Helper()
	o.Agent, o.HomeDir = standIn(), t.TempDir()
	n, err := node.Connect(t.Context(), s.document(t), o)
	if err != nil {
		return err
	}
	defer n.Close()
	_, err = n.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	return err
}

// refusedAs makes a first contact that must fail with an E.
func refusedAs[E error](t *testing.T, s *sandboxed, o node.Options) E {
	t.Helper()
	err := connectTo(t, s, o)
	want, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, want)
	}
	return want
}

// profiles are profiles of a shell with which a first contact works.
var profiles = map[string]string{
	"silent":            "",
	"talking":           "echo Welcome to win-1",
	"moving":            "cd " + strings.ReplaceAll(public, `\`, "/"),
	"talking, moving":   "echo Welcome\ncd C:/Windows",
	"talking at length": strings.Repeat("echo "+strings.Repeat("x", 1000)+"\n", 60),
	// A profile that prints the beginning of a packet, in the shell's own characters.
	"talking in packets": "echo \x00\x00\x00\x05\x02\x00\x00\x00\x04",
	"failing":            "nosuchcommand",
}

func TestFirstContactThroughEveryShellAndProfile(t *testing.T) {
	for _, shell := range sandbox.ShellNames() {
		for name, profile := range profiles {
			t.Run(shell+", "+name, func(t *testing.T) {
				s := serve(t, sandbox.ServerOptions{Shell: shell, Profile: profile})
				if err := s.machine.Process("test").Files.MakeFolder(public); err != nil {
					t.Fatal(err)
				}
				var outside []string
				s.machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
					created := o.Phase == simulated.Before && o.Kind == simulated.OpCreate
					if created && strings.Contains(o.Target, "swdt-agent-") && !strings.HasPrefix(o.Target, profileFolder) {
						outside = append(outside, o.Target)
					}
					return simulated.Continue()
				})
				if err := connectTo(t, s, node.Options{}); err != nil {
					t.Error(err)
				}
				if len(outside) > 0 {
					t.Errorf("the agent was put at %q, outside the account's profile", outside)
				}
			})
		}
	}
}

const profileFolder = `C:\Users\Administrator\`

// A later contact through bash finds the installed agent, although the first spelling of its path fails.
func TestALaterContactThroughBashInstallsNothing(t *testing.T) {
	var uploads, reads atomic.Int32
	count := func(method, path string) error {
		switch method {
		case "Put":
			uploads.Add(1)
		case "Get":
			reads.Add(1)
		}
		return nil
	}
	s := serve(t, sandbox.ServerOptions{Shell: "bash", SFTPFault: count})
	o := node.Options{Agent: standIn(), HomeDir: t.TempDir(), StateFile: t.TempDir() + "/machines.json"}
	for range 2 {
		n, err := node.Connect(t.Context(), s.document(t), o)
		if err != nil {
			t.Fatal(err)
		}
		n.Close()
	}
	if uploads.Load() != 1 || reads.Load() != 1 { // the first contact reads the upload back
		t.Errorf("%d uploads and %d reads of the agent, want one each", uploads.Load(), reads.Load())
	}
}

func TestAProfileThatKeepsSFTPFromStartingIsNamed(t *testing.T) {
	for name, profile := range map[string]string{
		"it ends the shell":     "echo Closed for maintenance\nexit 3",
		"it prints without end": strings.Repeat("echo "+strings.Repeat("x", 1000)+"\n", 70),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, sandbox.ServerOptions{Shell: "powershell", Profile: profile})
			e := refusedAs[*nodessh.NoSFTPError](t, s, node.Options{})
			if e.Refused || e.Printed == "" {
				t.Errorf("Refused is %v, Printed is %q", e.Refused, e.Printed)
			}
		})
	}
	t.Run("it waits for input", func(t *testing.T) {
		s := serve(t, sandbox.ServerOptions{Shell: "powershell", Profile: "Read-Host Name"})
		e := refusedAs[*nodessh.NoSFTPError](t, s, node.Options{AgentTimeout: time.Second})
		if e.Refused || e.Printed != "Name: " {
			t.Errorf("Refused is %v, Printed is %q", e.Refused, e.Printed)
		}
	})
	t.Run("there is no sftp-server.exe", func(t *testing.T) {
		s := serve(t, sandbox.ServerOptions{Shell: "powershell", NoSFTPServer: true})
		if e := refusedAs[*nodessh.NoSFTPError](t, s, node.Options{}); e.Refused || e.Printed != "" {
			t.Errorf("Refused is %v, Printed is %q", e.Refused, e.Printed)
		}
	})
	t.Run("sshd_config has no subsystem", func(t *testing.T) {
		s := serve(t, sandbox.ServerOptions{NoSFTP: true})
		if e := refusedAs[*nodessh.NoSFTPError](t, s, node.Options{}); !e.Refused {
			t.Error("Refused is false")
		}
	})
}

// A login that is accepted and then dropped, as by a policy that denies the logon over the network.
func TestADropAfterTheLoginIsNamed(t *testing.T) {
	var drops atomic.Bool
	s := serve(t, sandbox.ServerOptions{DropsAfterLogin: drops.Load})
	drops.Store(true)
	o := node.Options{StateFile: t.TempDir() + "/machines.json"}
	refusedAs[*nodessh.DroppedError](t, s, o)
	drops.Store(false)
	if err := connectTo(t, s, o); err != nil {
		t.Fatal(err)
	}
	drops.Store(true)
	refusedAs[*nodessh.DroppedError](t, s, o) // the agent is installed already
}

// A member of a domain rejects keys after a boot, until a domain controller answers. The error of a key's login is no
// rejected password, of which too many lock an account.
func TestKeysAreRejectedWithoutADomainController(t *testing.T) {
	var noController atomic.Bool
	noController.Store(true)
	s := serve(t, sandbox.ServerOptions{RejectsKeys: noController.Load})
	if e := refusedAs[*nodessh.AuthError](t, s, node.Options{}); e.Passwords != 0 || e.Server == "" {
		t.Errorf("Passwords is %d, Server is %q", e.Passwords, e.Server)
	}
	noController.Store(false)
	if err := connectTo(t, s, node.Options{}); err != nil {
		t.Error(err)
	}
}

// errInfected is answered as Windows' sshd answers ERROR_VIRUS_INFECTED (225).
var errInfected = errors.New("the file contains a virus")

// scanner makes SFTP fail to open uploaded agents for reading this many times.
func scanner(times int32) func(method, path string) error {
	var left atomic.Int32
	left.Store(times)
	return func(method, path string) error {
		if method == "Get" && strings.HasSuffix(path, ".exe") && left.Add(-1) >= 0 {
			return errInfected
		}
		return nil
	}
}

func TestAFileThatAScannerHoldsIsAwaited(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{SFTPFault: scanner(2)})
	if err := connectTo(t, s, node.Options{}); err != nil {
		t.Error(err)
	}
}

func TestAFileThatAnAntivirusBlocksIsNamed(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{SFTPFault: scanner(1 << 30)})
	e := refusedAs[*node.AgentBlockedError](t, s, node.Options{AgentTimeout: time.Second})
	if !e.Held || e.Vanished {
		t.Errorf("Held is %v, Vanished is %v", e.Held, e.Vanished)
	}
}

func TestAFullDiskIsNamed(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	s.machine.SetFreeBytes(1 << 10)
	e := refusedAs[*carrier.DiskFullError](t, s, node.Options{})
	if !strings.HasPrefix(e.Path, profileFolder) {
		t.Errorf("the path is %s, want one in the profile", e.Path)
	}
}

func TestSFTPAnswersWithTheCodesOfWindowsSSHD(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	client, err := sftp.NewClient(s.client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s.machine.WriteFile(`C:\held.txt`, []byte("held"))
	held, err := s.machine.Process("other").Files.Create(`C:\held.txt`, platform.CreateAppend)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	_, err = client.Create("/C:/held.txt")
	if status, ok := errors.AsType[*sftp.StatusError](err); !ok || status.FxCode() != sftp.ErrSSHFxFailure {
		t.Errorf("a file that another program holds: %v, want a failure (code 4)", err)
	}
	s.machine.SetFreeBytes(8 << 10)
	if volume, err := client.StatVFS("/C:/"); err != nil || volume.FreeSpace() != 8<<10 {
		t.Errorf("free space: %v, %v", volume, err)
	}
}

// Without a terminal, a program survives its channel and its connection, until it ends with its input.
func TestAProgramOutlivesItsConnection(t *testing.T) {
	var begun, ended sync.WaitGroup
	begun.Add(1)
	ended.Add(1)
	release := make(chan struct{})
	program := simulated.Program{
		Name:  "survivor",
		Match: func(image *simulated.Image) bool { return strings.HasSuffix(image.Path, "survivor.exe") },
		Main: func(_ context.Context, p *simulated.Process) int {
			begun.Done()
			defer ended.Done()
			_, _ = io.Copy(io.Discard, p.Stdin)
			select {
			case <-release:
			case <-p.Context().Done():
				t.Error("the program was killed")
			}
			return 0
		},
	}
	s := serve(t, sandbox.ServerOptions{}, program)
	s.machine.WriteFile(`C:\survivor.exe`, simulated.Binary(simulated.BinarySpec{Name: "survivor"}))
	client := s.client(t)
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	must(session.StdinPipe())
	if err := session.Start(`C:\survivor.exe`); err != nil {
		t.Fatal(err)
	}
	begun.Wait()
	client.Close()
	if _, err := s.dial(t, ssh.PublicKeys(s.key)); err != nil { // the server has seen the end of the first connection
		t.Error(err)
	}
	close(release)
	ended.Wait()
}

func TestLimitsOfConnections(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{MaxStartups: 1})
	client := s.client(t)
	for i := range 11 {
		session, err := client.NewSession()
		if err == nil {
			_, err = session.StdinPipe()
			err = errors.Join(err, session.Start("cmd /k"))
		}
		if refused := err != nil; refused != (i == 10) {
			t.Errorf("session %d: %v", i+1, err)
		}
	}
	waiting, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	if _, err := waiting.Read(make([]byte, 1)); err != nil { // the server's version: the connection counts
		t.Fatal(err)
	}
	if _, err := s.dial(t, ssh.PublicKeys(s.key)); err == nil {
		t.Error("a second connection was let in while one had not logged in")
	}
}
