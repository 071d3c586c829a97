package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/sftp"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// standIn returns an agent for tests. Its bytes are not the real agent's, but starting them runs
// the real agent's code.
func standIn() agentbin.Agent {
	return agentbin.FromBytes(simulated.Binary(simulated.BinarySpec{Name: "swdt-agent"}))
}

// sandboxed is a served machine.
type sandboxed struct {
	machine *simulated.Machine
	address string
	hostKey ssh.Signer
	key     ssh.Signer
	keyFile string
}

func serve(t *testing.T, o sandbox.ServerOptions, programs ...simulated.Program) *sandboxed {
	t.Helper()
	agent := standIn()
	s := &sandboxed{keyFile: filepath.Join(t.TempDir(), "key")}
	var pem []byte
	var err error
	if s.hostKey, _, err = sandbox.NewKey("host"); err != nil {
		t.Fatal(err)
	}
	if s.key, pem, err = sandbox.NewKey("client"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.keyFile, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	s.machine = simulated.New(simulated.Options{
		Agent:    &simulated.Agent{Hash: agent.Hash, Main: sandbox.AgentMain(agent.Hash)},
		Programs: programs,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	o.Machine, o.HostKey, o.AuthorizedKeys = s.machine, s.hostKey, []ssh.PublicKey{s.key.PublicKey()}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- sandbox.Serve(ctx, listener, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		s.machine.Close()
	})
	return s
}

func (s *sandboxed) dial(t *testing.T, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	t.Helper()
	client, err := ssh.Dial("tcp", s.address, &ssh.ClientConfig{
		User: "administrator", Auth: auth, HostKeyCallback: ssh.FixedHostKey(s.hostKey.PublicKey()),
	})
	if err == nil {
		t.Cleanup(func() { client.Close() })
	}
	return client, err
}

func (s *sandboxed) client(t *testing.T) *ssh.Client {
	t.Helper()
	client, err := s.dial(t, ssh.PublicKeys(s.key))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// output runs a command and returns its stdout, stderr and exit code.
func output(t *testing.T, client *ssh.Client, line string) (stdout, stderr string, code int) {
	t.Helper()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var out, errs bytes.Buffer
	session.Stdout, session.Stderr = &out, &errs
	err = session.Run(line)
	var exit *ssh.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitStatus()
	case err != nil:
		t.Fatalf("%s: %v", line, err)
	}
	return out.String(), errs.String(), code
}

func (s *sandboxed) document(t *testing.T) config.Document {
	t.Helper()
	file := filepath.Join(t.TempDir(), "node.yaml")
	text := sandbox.NodeFile("sandbox", s.address, s.keyFile, s.hostKey.PublicKey())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	docs, err := config.Load([]string{file}, nil)
	switch {
	case err != nil:
		t.Fatalf("the node file that a sandbox writes: %v", err)
	case len(docs) != 1:
		t.Fatalf("the node file that a sandbox writes: docs has %d elements, want 1: %v", len(docs), docs)
	case len(docs[0].Warnings) > 0:
		t.Fatalf("the node file that a sandbox writes: docs[0].Warnings is %v, want it empty", docs[0].Warnings)
	}
	return docs[0]
}

func TestTheNodeFileWorksAtOnce(t *testing.T) {
	for _, shell := range sandbox.ShellNames() {
		t.Run(shell, func(t *testing.T) {
			s := serve(t, sandbox.ServerOptions{Shell: shell})
			home := t.TempDir()
			n, err := node.Connect(t.Context(), s.document(t), node.Options{Agent: standIn(), HomeDir: home})
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			facts, err := n.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if facts.GetSimulated() != agentv1.Simulation_SIMULATION_SIMULATED {
				t.Errorf("facts: %v", facts)
			}
			if _, err := s.machine.Process("test").Files.Stat(layout.Agent(standIn().Hash)); err != nil {
				t.Errorf("the agent was not installed: %v", err)
			}
		})
	}
}

func TestOnlyAdministratorIsLetIn(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{Password: "secret"})
	stranger, _, err := sandbox.NewKey("stranger")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.dial(t, ssh.PublicKeys(stranger)); err == nil {
		t.Error("a stranger's key was accepted")
	}
	if _, err := s.dial(t, ssh.Password("wrong")); err == nil {
		t.Error("a wrong password was accepted")
	}
	if _, err := s.dial(t, ssh.Password("secret")); err != nil {
		t.Errorf("the password was refused: %v", err)
	}
	_, err = ssh.Dial("tcp", s.address, &ssh.ClientConfig{
		User: "guest", Auth: []ssh.AuthMethod{ssh.PublicKeys(s.key)},
		HostKeyCallback: ssh.FixedHostKey(s.hostKey.PublicKey()),
	})
	if err == nil {
		t.Error("user guest was let in")
	}
}

func TestWithoutAPasswordNoneIsAccepted(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	if _, err := s.dial(t, ssh.Password("")); err == nil {
		t.Error("an empty password was accepted")
	}
}

func TestShellsAnswerAsWindowsDoes(t *testing.T) {
	tests := []struct {
		shell, line    string
		stdout, stderr string // parts
		code           int
	}{
		{"cmd", "echo hello world", "hello world\r\n", "", 0},
		{"cmd", `echo "a b"`, "\"a b\"\r\n", "", 0},
		{"powershell", `echo "a b"`, "a b\r\n", "", 0},
		{"cmd", "ver", "Microsoft Windows [Version 10.0.20348", "", 0},
		{"cmd", "exit 7", "", "", 7},
		{"cmd", "exit /b 3", "", "", 3},
		{"cmd", "nosuchthing --x", "", "'nosuchthing' is not recognized as an internal or external command", 1},
		{"cmd", `C:\nosuchfolder\x.exe`, "", "The system cannot find the path specified.", 1},
		{"powershell", "nosuchthing", "", "is not recognized as the name of a cmdlet", 1},
		{"cmd", "nosuchthing >nul 2>&1 || echo no", "no\r\n", "", 0},
		{"cmd", "nosuchthing 2>nul && echo yes", "", "", 1},
		{"powershell", "echo one; echo two", "one\r\ntwo\r\n", "", 0},
		{"cmd", "hostname", "win-node", "", 0},
		{"cmd", `.\nosuchthing.exe install`, "", "is not recognized as an internal or external command", 1},
		{"cmd", "./x.exe install", "", "'.' is not recognized as an internal or external command", 1},
		{"cmd", "cmd /c set USERPROFILE", "USERPROFILE=C:\\Users\\Administrator\r\n", "", 0},
		{"cmd", "cmd /u /c set USERPROFILE", "U\x00S\x00E\x00R\x00P", "", 0},
		{"powershell", "exit 7", "", "", 7},
		{"powershell", "cmd /c exit 7", "", "", 1},
		{"bash", "echo 'a b'", "a b\r\n", "", 0},
		{"bash", `.\x-1.exe install`, "", "bash: line 1: .x-1.exe: command not found", 127},
		{"bash", `C:\a\b.exe`, "", "bash: line 1: C:ab.exe: command not found", 127},
		{"bash", "./x-1.exe install", "", "bash: line 1: ./x-1.exe: No such file or directory", 127},
		{"bash", "MSYS_NO_PATHCONV=1 cmd.exe /c 'exit 3'", "", "", 3},
		{"bash", "cmd /c 'exit 3'", "Microsoft Windows [Version", "", 0}, // /c became C:/
	}
	for _, shell := range sandbox.ShellNames() {
		s := serve(t, sandbox.ServerOptions{Shell: shell})
		client := s.client(t)
		for _, test := range tests {
			if test.shell != shell {
				continue
			}
			stdout, stderr, code := output(t, client, test.line)
			switch {
			case code != test.code:
				t.Errorf("%s: %s: code is %v, want %v", shell, test.line, code, test.code)
			case !strings.Contains(stdout, test.stdout):
				t.Errorf("%s: %s: stdout lacks %q:\n%s", shell, test.line, test.stdout, stdout)
			case !strings.Contains(stderr, test.stderr):
				t.Errorf("%s: %s: stderr lacks %q:\n%s", shell, test.line, test.stderr, stderr)
			}
		}
	}
}

func TestTheShellsProfileRunsBeforeEachCommandAndBeforeSFTP(t *testing.T) {
	for _, shell := range sandbox.ShellNames() {
		t.Run(shell, func(t *testing.T) {
			s := serve(t, sandbox.ServerOptions{Shell: shell, Profile: "echo Welcome\ncd C:/Windows"})
			client := s.client(t)
			if stdout, _, _ := output(t, client, "hostname"); stdout != "Welcome\r\nwin-node\r\n" {
				t.Errorf("a command printed %q", stdout)
			}
			session, err := client.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			in, out := must(session.StdinPipe()), must(session.StdoutPipe())
			if err := session.RequestSubsystem("sftp"); err != nil {
				t.Fatal(err)
			}
			noise := make([]byte, len("Welcome\r\n"))
			if _, err := io.ReadFull(out, noise); err != nil || string(noise) != "Welcome\r\n" {
				t.Fatalf("before SFTP came %q, %v", noise, err)
			}
			files, err := sftp.NewClientPipe(out, in)
			if err != nil {
				t.Fatal(err)
			}
			defer files.Close()
			if folder, err := files.Getwd(); err != nil || folder != "/C:/Windows" {
				t.Errorf("SFTP is in %s, %v", folder, err)
			}
		})
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestInteractiveUseSaysWhatItIs(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	session, err := s.client(t).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	session.Stdin, session.Stdout = strings.NewReader("echo hi\nnosuchthing\nexit 5\n"), &out
	if err := session.Shell(); err != nil {
		t.Fatal(err)
	}
	var exit *ssh.ExitError
	if err := session.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 5 {
		t.Errorf("ended with %v", err)
	}
	if text := out.String(); !strings.Contains(text, "sandbox of swdt") || !strings.Contains(text, "hi\r\n") {
		t.Errorf("said %q", text)
	}
}

func TestARebootCutsConnectionsAndComesBack(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	n, err := node.Connect(t.Context(), s.document(t), node.Options{Agent: standIn(), HomeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	facts, err := n.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Machine.Reboot(t.Context(), &agentv1.RebootRequest{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := n.AwaitReboot(t.Context(), facts.GetBootId()); err != nil {
		t.Fatal(err)
	}
	again, err := n.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	if err != nil || again.GetBootId() == facts.GetBootId() {
		t.Errorf("after the reboot: %v, %v", again, err)
	}
}

func TestACutConnectionEndsWhatRanInIt(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	n, err := node.Connect(t.Context(), s.document(t), node.Options{Agent: standIn(), HomeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.processes(t), layout.AgentName) {
		t.Fatalf("no agent among %v", s.processes(t))
	}
	n.Close()
	s.awaitGone(t, layout.AgentName)
}

func (s *sandboxed) processes(t *testing.T) (names []string) {
	t.Helper()
	list, err := s.machine.Process("test").Processes.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names
}

// awaitGone waits until no process of that name is left.
func (s *sandboxed) awaitGone(t *testing.T, name string) {
	t.Helper()
	windows := s.machine.Process("test")
	list, err := windows.Processes.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.Name != name {
			continue
		}
		handle, err := windows.Processes.Open(p.PID)
		if err != nil {
			continue // gone in between
		}
		if err := handle.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "serve") {
		os.Exit(background(os.Args))
	}
	// The heartbeat of an exec whose connection breaks ends at its next beat, within 5 s.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// A server whose context ends before it accepts connections ends.
func TestServeEndsWithItsContext(t *testing.T) {
	agent := standIn()
	machine := simulated.New(simulated.Options{
		Agent: &simulated.Agent{Hash: agent.Hash, Main: sandbox.AgentMain(agent.Hash)},
	})
	t.Cleanup(machine.Close)
	hostKey, _, err := sandbox.NewKey("host")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5000 { // the order of the two is random
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := sandbox.Serve(ended, listener, sandbox.ServerOptions{Machine: machine, HostKey: hostKey}); err != nil {
			t.Fatal(err)
		}
	}
}
