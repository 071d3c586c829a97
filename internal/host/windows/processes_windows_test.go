package windows

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
)

func runProgram(t *testing.T, c host.Command, words ...string) (string, int) {
	t.Helper()
	var stdout bytes.Buffer
	c.Path, c.Args, c.Stdout = executable(t), append([]string{"program"}, words...), &stdout
	code, err := processes{}.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(stdout.String(), "\r\n", "\n"), code
}

func TestListNamesThisProcess(t *testing.T) {
	list, err := processes{}.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list, func(p host.Process) bool { return p.PID == uint32(os.Getpid()) })
	if at < 0 {
		t.Fatal("this process is not in the list")
	}
	me := list[at]
	if !strings.EqualFold(me.Image, executable(t)) || !strings.EqualFold(me.Name, filepath.Base(executable(t))) ||
		me.Memory == 0 || me.Started.IsZero() || time.Since(me.Started) < 0 || time.Since(me.Started) > time.Hour {
		t.Errorf("%+v", me)
	}
}

func TestRunKeepsArguments(t *testing.T) {
	words := []string{"args", "", "a b", `q"q`, `c:\dir\`, `c:\d ir\`, `\\"`, "ü€𝄞", "*?%PATH%^&|<>"}
	out, code := runProgram(t, host.Command{}, words...)
	var want []string
	for _, word := range words[1:] {
		var line bytes.Buffer
		line.WriteString(jsonText(t, word))
		want = append(want, line.String())
	}
	if code != 0 || strings.TrimSpace(out) != strings.Join(want, "\n") {
		t.Errorf("code %d, got\n%swant\n%s", code, out, strings.Join(want, "\n"))
	}
}

func TestRunStreamsAndExitCode(t *testing.T) {
	var stderr bytes.Buffer
	text := strings.Repeat("0123456789\x00\xff\r\n", 20_000)
	var stdout bytes.Buffer
	code, err := processes{}.Run(t.Context(), host.Command{
		Path: executable(t), Args: []string{"program", "stderr", "oops", "stdin", "exit", "3010"},
		Stdin: strings.NewReader(text), Stdout: &stdout, Stderr: &stderr,
	})
	if err != nil || code != 3010 {
		t.Errorf("exit code %d, %v", code, err)
	}
	if stdout.String() != text {
		t.Errorf("%d bytes came back of %d", stdout.Len(), len(text))
	}
	if strings.TrimSpace(stderr.String()) != "oops" {
		t.Errorf("stderr %q", &stderr)
	}
	if _, code := runProgram(t, host.Command{}, "stdin"); code != 0 {
		t.Errorf("no stdin: exit code %d", code)
	}
}

func TestRunEnvironmentAndFolder(t *testing.T) {
	folder := tempFolder(t)
	out, _ := runProgram(t, host.Command{Folder: folder, Environment: []string{"SWDT_X=a b"}}, "env", "SWDT_X", "env", "systemroot", "folder")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || lines[0] != "a b" || lines[1] == "" || !strings.EqualFold(lines[2], folder) {
		t.Errorf("%q", lines)
	}
	out, _ = runProgram(t, host.Command{}, "folder")
	if home, _ := os.UserHomeDir(); !strings.EqualFold(strings.TrimSpace(out), home) {
		t.Errorf("ran in %q, want %q", out, home)
	}
}

func TestRunShell(t *testing.T) {
	var stdout bytes.Buffer
	code, err := processes{}.Run(t.Context(), host.Command{
		Path: "cmd", Args: []string{"/c", `echo "a  b" & exit 7`}, Stdout: &stdout,
	})
	if err != nil || code != 7 || strings.TrimSpace(stdout.String()) != `"a  b"` {
		t.Errorf("%d, %v, %q", code, err, &stdout)
	}
}

func TestRunNothing(t *testing.T) {
	for _, path := range []string{`C:\no\such.exe`, "no-such-program", `.\x.exe`} {
		if _, err := (processes{}).Run(t.Context(), host.Command{Path: path}); !errors.Is(err, host.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRunEndsTheTree(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := processes{}.Run(ctx, host.Command{
			Path: executable(t), Args: []string{"program", "childandwait", "forever"}, Stdout: writer,
		})
		done <- err
	}()
	child := childOf(t, reader)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled run: %v", err)
	}
	if err := child.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func childOf(t *testing.T, r io.Reader) host.ProcessHandle {
	t.Helper()
	line := make([]byte, 32)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	handle, err := processes{}.Open(uint32(pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { handle.Close() })
	return handle
}

// A grandchild that keeps the output open must not keep Run.
func TestRunDoesNotWaitForGrandchildren(t *testing.T) {
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		code, err := processes{}.Run(t.Context(), host.Command{
			Path: executable(t), Args: []string{"program", "child", "forever"}, Stdout: writer,
		})
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		done <- err
	}()
	child := childOf(t, reader)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := child.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// A terminal as stdin never ends; the command does.
func TestRunDoesNotWaitForStdin(t *testing.T) {
	reader, writer := io.Pipe()
	defer writer.Close()
	if _, code := runProgram(t, host.Command{Stdin: reader}, "exit", "4"); code != 4 {
		t.Errorf("exit code %d", code)
	}
}

func TestOpenAndWait(t *testing.T) {
	if _, err := (processes{}).Open(0x7ffffff0); !errors.Is(err, host.ErrNotExist) {
		t.Errorf("open of no process: %v", err)
	}
	me, err := processes{}.Open(uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer me.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := me.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled wait: %v", err)
	}
}
