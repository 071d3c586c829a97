package simulated_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func TestCommands(t *testing.T) {
	m := newMachine(t, simulated.Options{Hostname: "node-1"})
	p := m.Process("test")
	for _, c := range []struct {
		command string
		stdout  string
		stderr  string
		code    int
	}{
		{command: "hostname", stdout: "node-1\r\n"},
		{command: "whoami", stdout: "node-1\\administrator\r\n"},
		{command: "cmd /c echo %SystemRoot% x", stdout: "C:\\Windows x\r\n"},
		{command: "cmd /c exit 5", code: 5},
		{command: "cmd /c echo a&& exit 3 & echo b", stdout: "a\r\n", code: 3},
		{command: "cmd /c echo oops 1>&2", stderr: "oops\r\n"},
		{command: `cmd /c mkdir C:\made&&cd C:\made&&cd`, stdout: "C:\\made\r\n"},
		{command: `cmd /c nothing there`,
			stderr: "'nothing' is not recognized as an internal or external command,\r\n" +
				"operable program or batch file.\r\n", code: 1},
		{command: `cmd /c C:\k\kubelet.exe --version`, stdout: "Kubernetes v1.28.4\n"},
		{command: `cmd /c type C:\missing`, stderr: "The system cannot find the file specified.\r\n", code: 1},
	} {
		argv := strings.Split(c.command, " ")
		stdout, stderr, code, err := run(t, p, argv[0], argv[1:]...)
		switch {
		case strings.TrimRight(stdout, " ") != c.stdout:
			t.Errorf(`%s: strings.TrimRight(stdout, " ") is %v, want %v`, c.command,
				strings.TrimRight(stdout, " "), c.stdout)
		case stderr != c.stderr:
			t.Errorf("%s: stderr is %v, want %v", c.command, stderr, c.stderr)
		case code != c.code:
			t.Errorf("%s: code is %v, want %v", c.command, code, c.code)
		case err != nil:
			t.Errorf("%s: %v", c.command, err)
		}
	}
	switch got := m.Commands(); {
	case len(got) != 12:
		t.Errorf("got has %d elements, want 12: %v", len(got), got)
	case got[0].Path != "hostname":
		t.Errorf("got[0].Path is %q, want %q", got[0].Path, "hostname")
	case got[0].By != "test":
		t.Errorf("got[0].By is %q, want %q", got[0].By, "test")
	}
}

func encode(script string) string {
	var raw []byte
	for _, unit := range utf16.Encode([]rune(script)) {
		raw = binary.LittleEndian.AppendUint16(raw, unit)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func TestChocolatey(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("setup")
	const choco = `C:\ProgramData\chocolatey\bin\choco.exe`
	install := func() (string, int) {
		t.Helper()
		_, stderr, code, err := run(t, p, "powershell", "-NoProfile", "-EncodedCommand",
			encode("iex ((New-Object Net.WebClient).DownloadString('https://community.chocolatey.org/install.ps1'))"))
		if err != nil {
			t.Fatal(err)
		}
		return stderr, code
	}
	if _, _, _, err := run(t, p, choco, "list"); !errors.Is(err, fault.ErrNotExist) {
		t.Fatalf("before the installation: %v", err)
	}
	if stderr, code := install(); code == 0 || !strings.Contains(stderr, "could not be resolved") {
		t.Fatalf("without internet: %d, %s", code, stderr)
	}
	m.SetInternet(true)
	if _, code := install(); code != 0 {
		t.Fatalf("code is %v, want 0", code)
	}
	m.OfferPackage("extra", "2.0.0")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"install vim -y --no-progress --limit-output", 0, "successful"},
		{"install Extra --version 1.5.0 -y", 0, "successful"},
		{"install vim --yes", 0, "already installed"},
		{"install swdt-unknown -y", 1, "not found"},
		{"install grep", 1, "script"},
		{"list --limit-output --local-only", 0, "chocolatey|2.3.0\r\nextra|1.5.0\r\nvim|9.1.821\r\n"},
		{"uninstall extra -y", 0, "uninstalled"},
		{"--version", 0, "2.3.0"},
	} {
		stdout, _, code, err := run(t, p, choco, strings.Split(c.args, " ")...)
		switch {
		case code != c.code:
			t.Errorf("code is %v, want %v", code, c.code)
		case err != nil:
			t.Error(err)
		case !strings.Contains(stdout, c.want):
			t.Errorf("stdout lacks %q:\n%s", c.want, stdout)
		}
	}
	m.SetInternet(false)
	if _, _, code, _ := run(t, p, choco, "install", "grep", "-y"); code == 0 {
		t.Error("installed without internet")
	}
	if got := m.Packages(); len(got) != 2 || got["vim"] == "" {
		t.Errorf("installed: %v", got)
	}
}

func TestPowerShellIsScripted(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("p")
	m.Script(func(c platform.Command) (simulated.Answer, bool) {
		text, ok := simulated.PowerShellScript(c.Args)
		return simulated.Answer{ExitCode: 4, Stdout: "scripted", Stderr: "so"},
			ok && strings.Contains(text, "Get-Thing")
	})
	switch out, errOut, code, err := run(t, p, "powershell", "-EncodedCommand", encode("Get-Thing")); {
	case out != "scripted":
		t.Errorf("out is %q, want %q", out, "scripted")
	case errOut != "so":
		t.Errorf("errOut is %q, want %q", errOut, "so")
	case code != 4:
		t.Errorf("code is %v, want 4", code)
	case err != nil:
		t.Error(err)
	}
	switch out, _, code, err := run(t, p, "powershell", "-Command", "$x = 1; Write-Output 'hi'; exit 3"); {
	case out != "hi\r\n":
		t.Errorf("out is %q, want %q", out, "hi\r\n")
	case code != 3:
		t.Errorf("code is %v, want 3", code)
	case err != nil:
		t.Error(err)
	}
	switch _, errOut, code, _ := run(t, p, "powershell", "-Command", "Get-Other"); {
	case code != 1:
		t.Errorf("code is %v, want 1", code)
	case !strings.Contains(errOut, "no PowerShell"):
		t.Errorf("errOut lacks %q:\n%s", "no PowerShell", errOut)
	}
}

// agentMain echoes lines with its own path, until stdin ends.
func agentMain(ctx context.Context, p *platform.Platform, executable string, args []string, stdin io.Reader, stdout,
	stderr io.Writer) int {
	if len(args) > 0 {
		<-ctx.Done()
		return 0
	}
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		fmt.Fprintf(stdout, "%s: %s\n", executable, lines.Text())
	}
	return 6
}

func TestTheAgentRunsByItsContent(t *testing.T) {
	raw := simulated.Binary(simulated.BinarySpec{Name: "agent"})
	m := newMachine(t, simulated.Options{})
	m.WriteFile(`C:\ProgramData\swdt\agent.exe`, raw)
	hash := m.Snapshot(`C:\ProgramData\swdt`)[`C:\ProgramData\swdt\agent.exe`]
	m.Register(simulated.AgentProgram(simulated.Agent{Hash: hash, Main: agentMain}))
	sshd := m.Process("sshd.exe")

	var out strings.Builder
	code, err := sshd.Processes.Run(t.Context(), platform.Command{
		Path: `c:/programdata/swdt/AGENT.EXE`, Stdin: strings.NewReader("one\ntwo\n"), Stdout: &out,
	})
	switch want := "C:\\ProgramData\\swdt\\agent.exe: one\nC:\\ProgramData\\swdt\\agent.exe: two\n"; {
	case out.String() != want:
		t.Fatalf("out.String() is %v, want %v", out.String(), want)
	case code != 6:
		t.Fatalf("code is %v, want 6", code)
	case err != nil:
		t.Fatal(err)
	}

	// Killed while it waits for input that never arrives.
	stdin, feed := io.Pipe()
	defer feed.Close()
	reader, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		code, err := sshd.Processes.Run(context.Background(), platform.Command{Path: `C:\ProgramData\swdt\agent.exe`,
			Stdin: stdin, Stdout: stdout})
		if err == nil && code != 1 {
			err = fmt.Errorf("exit code %d", code)
		}
		ended <- err
	}()
	go func() { _, _ = io.WriteString(feed, "hello\n") }()
	switch line, err := bufio.NewReader(reader).ReadString('\n'); {
	case !strings.HasSuffix(line, ": hello\n"):
		t.Fatalf("line does not end with %q:\n%s", ": hello\n", line)
	case err != nil:
		t.Fatal(err)
	}
	if n := m.Kill("agent.exe"); n != 1 {
		t.Errorf("%d agents killed", n)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheAgentAsAService(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	m.WriteFile(`C:\ProgramData\swdt\agent.exe`, simulated.Binary(simulated.BinarySpec{Name: "agent"}))
	hash := m.Snapshot(`C:\ProgramData\swdt`)[`C:\ProgramData\swdt\agent.exe`]
	m.Register(simulated.AgentProgram(simulated.Agent{Hash: hash, Main: agentMain}))
	p := m.Process("p")
	err := p.Services.Create(t.Context(), platform.ServiceConfig{
		Name: "guardian", StartType: platform.StartAuto, CommandLine: `C:\ProgramData\swdt\agent.exe guardian 1`,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Services.Start(t.Context(), "guardian"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "guardian", platform.Running)
	m.Reboot()
	if err := m.AwaitUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = m.Process("p")
	awaitState(t, p, "guardian", platform.Running)
	if err := p.Services.Stop(t.Context(), "guardian"); err != nil {
		t.Fatal(err)
	}
	if s := awaitState(t, p, "guardian", platform.Stopped); s.ExitCode != 0 {
		t.Errorf("s.ExitCode is %v, want 0", s.ExitCode)
	}
}
