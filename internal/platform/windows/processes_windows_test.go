package windows

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
)

func runProgram(t *testing.T, c platform.Command, words ...string) (string, int) {
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
	at := slices.IndexFunc(list, func(p platform.Process) bool { return p.PID == uint32(os.Getpid()) })
	if at < 0 {
		t.Fatal("this process is not in the list")
	}
	me := list[at]
	switch {
	case !strings.EqualFold(me.Image, executable(t)):
		t.Errorf("me.Image is %q, want %q", me.Image, executable(t))
	case !strings.EqualFold(me.Name, filepath.Base(executable(t))):
		t.Errorf("me.Name is %q, want %q", me.Name, filepath.Base(executable(t)))
	case me.Memory == 0:
		t.Error("me.Memory is 0")
	case me.Started.IsZero():
		t.Error("me.Started.IsZero() is true, want false")
	case time.Since(me.Started) < 0:
		t.Errorf("time.Since(me.Started) is %v, want at least 0", time.Since(me.Started))
	case time.Since(me.Started) > time.Hour:
		t.Errorf("time.Since(me.Started) is %v, want at most %v", time.Since(me.Started), time.Hour)
	}
}

func TestRunKeepsArguments(t *testing.T) {
	words := []string{"args", "", "a b", `q"q`, `c:\dir\`, `c:\d ir\`, `\\"`, "ü€𝄞", "*?%PATH%^&|<>"}
	out, code := runProgram(t, platform.Command{}, words...)
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

func TestRunEnvironmentAndFolder(t *testing.T) {
	folder := tempFolder(t)
	out, _ := runProgram(t, platform.Command{Folder: folder, Environment: []string{"SWDT_X=a b"}}, "env", "SWDT_X",
		"env", "systemroot", "folder")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	switch {
	case len(lines) != 3:
		t.Errorf("lines has %d elements, want 3: %v", len(lines), lines)
	case lines[0] != "a b":
		t.Errorf("lines[0] is %q, want %q", lines[0], "a b")
	case lines[1] == "":
		t.Error("lines[1] is empty")
	case !strings.EqualFold(lines[2], folder):
		t.Errorf("lines[2] is %q, want %q", lines[2], folder)
	}
	out, _ = runProgram(t, platform.Command{}, "folder")
	if home, _ := os.UserHomeDir(); !strings.EqualFold(strings.TrimSpace(out), home) {
		t.Errorf("ran in %q, want %q", out, home)
	}
}

// The command ends although stdin, like a terminal, never ends.
func TestRunDoesNotWaitForStdin(t *testing.T) {
	reader, writer := io.Pipe()
	defer writer.Close()
	if _, code := runProgram(t, platform.Command{Stdin: reader}, "exit", "4"); code != 4 {
		t.Errorf("exit code %d", code)
	}
}

// A child that was started suspended, and that no command's job has yet, ends with its killed parent.
func TestChildrenEndWithAKilledProcess(t *testing.T) {
	parent := exec.Command(executable(t), "program", "suspendedchild")
	stdin, err := parent.StdinPipe() // keeps the parent waiting
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid uint32
	_, scanErr := fmt.Fscanln(stdout, &pid)
	child, openErr := windows.OpenProcess(windows.SYNCHRONIZE, false, pid)
	if err := errors.Join(scanErr, openErr, parent.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(child)
	_ = parent.Wait() // reports that it was killed
	switch event, err := windows.WaitForSingleObject(child, 10_000); {
	case err != nil:
		t.Error(err)
	case event == uint32(windows.WAIT_TIMEOUT):
		t.Error("the child stayed")
	}
}
