package platformtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// running is a command that runs in the background.
type running struct {
	cancel context.CancelFunc // kills the command
	stdin  *io.PipeWriter
	stdout *bufio.Reader
	done   chan struct{}
	code   int
	err    error
}

// begin starts the fixture's program. The method start starts any command.
func (f Fixture) begin(t *testing.T, words ...string) *running {
	t.Helper()
	return f.start(t, f.command(words...))
}

func (f Fixture) start(t *testing.T, c platform.Command) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	r := &running{cancel: cancel, stdin: stdin, stdout: bufio.NewReader(stdout), done: make(chan struct{})}
	c.Stdin, c.Stdout = in, out
	go func() {
		defer close(r.done)
		r.code, r.err = f.Platform.Processes.Run(ctx, c)
		_ = out.Close()
	}()
	t.Cleanup(func() {
		cancel()
		_ = stdin.Close()
		_ = stdout.Close()
		r.wait(t)
	})
	return r
}

// line returns the next line of the command's output.
func (r *running) line(t *testing.T) string {
	t.Helper()
	line, err := r.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("the command's output has ended: %q, %v", line, err)
	}
	return strings.TrimRight(line, "\r\n")
}

func (r *running) wait(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	select {
	case <-r.done:
	case <-ctx.Done():
		t.Error("never: the command has ended")
	}
}

// run runs a command to its end, and returns its output with every line end as \n.
func (f Fixture) run(t *testing.T, c platform.Command) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	code, err := f.Platform.Processes.Run(ctx, c)
	check(t, err)
	return lines(out.String()), lines(errOut.String()), code
}

// lines converts every line end to \n.
func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

func testProcesses(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("StreamsAndExitCode", func(t *testing.T) {
		f := fixture(t)
		c := f.command("stderr", "to stderr", "stdin", "exit", "7")
		c.Stdin = strings.NewReader("to stdout\nbinary: \x00\xff")
		stdout, stderr, code := f.run(t, c)
		switch {
		case stdout != "to stdout\nbinary: \x00\xff":
			t.Errorf("stdout is %q, want %q", stdout, "to stdout\nbinary: \x00\xff")
		case stderr != "to stderr\n":
			t.Errorf("stderr is %q, want %q", stderr, "to stderr\n")
		case code != 7:
			t.Errorf("code is %v, want 7", code)
		}
	})
	t.Run("SignalMakesNoEvent", func(t *testing.T) {
		f := fixture(t)
		for range 2 {
			if err := f.Platform.Processes.Signal(`Global\swdt-none`); !errors.Is(err, fault.ErrNotExist) {
				t.Errorf("no such event: %v", err)
			}
		}
	})
	t.Run("WithoutStdinThereIsNone", func(t *testing.T) {
		f := fixture(t)
		switch stdout, _, code := f.run(t, f.command("stdin", "exit", "0")); {
		case stdout != "":
			t.Errorf(`stdout is %q, want ""`, stdout)
		case code != 0:
			t.Errorf("code is %v, want 0", code)
		}
	})
	t.Run("MuchOutput", func(t *testing.T) {
		f := fixture(t)
		c := f.command("stdin", "exit", "0")
		much := strings.Repeat("0123456789abcde\n", 1<<16)
		c.Stdin = strings.NewReader(much)
		if stdout, _, _ := f.run(t, c); stdout != much {
			t.Errorf("%d bytes of %d", len(stdout), len(much))
		}
	})
	t.Run("ArgumentsArriveAsTheyAre", func(t *testing.T) {
		f := fixture(t)
		want := []string{
			`plain`, `two words`, ``, `"quoted"`, `a "b" c`, `back\slash`, `ends\`, `two ends\\`, `\"`, `a\\"b`,
			`C:\Program Files\`, `--name=va lue`, `%PATH%`, `&|<>^!`, `ümläut`, "tab\there", `'single'`, `;`,
		}
		stdout, _, code := f.run(t, f.command(append([]string{"args"}, want...)...))
		if code != 0 {
			t.Fatalf("%d: code is %v, want 0", code, code)
		}
		got := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		if len(got) != len(want) {
			t.Fatalf("%d arguments of %d: %q", len(got), len(want), got)
		}
		for i := range want {
			var text string
			check(t, json.Unmarshal([]byte(got[i]), &text))
			if text != want[i] {
				t.Errorf("gave %q, arrived %q", want[i], text)
			}
		}
	})
	t.Run("EnvironmentAndFolder", func(t *testing.T) {
		f := fixture(t)
		c := f.command("env", "SWDT_HOSTTEST", "folder", "exit", "0")
		c.Environment, c.Folder = []string{"SWDT_HOSTTEST=a value"}, f.Folder
		stdout, _, _ := f.run(t, c)
		if !strings.EqualFold(stdout, "a value\n"+f.Folder+"\n") {
			t.Error("strings.EqualFold(stdout, \"a value\\n\"+f.Folder+\"\\n\") is false, want true")
		}
	})
	t.Run("CannotBeStarted", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("text.exe"), "this is no program, but long enough to be looked at closely")
		for _, path := range []string{f.path("missing.exe"), "swdt-no-such-program"} {
			_, err := f.Platform.Processes.Run(t.Context(), platform.Command{Path: path})
			if !errors.Is(err, fault.ErrNotExist) {
				t.Errorf("%s: the error is %v, want %v", path, err, fault.ErrNotExist)
			}
		}
		if _, err := f.Platform.Processes.Run(t.Context(), platform.Command{Path: f.path("text.exe")}); err == nil {
			t.Error("a text file was run")
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.Platform.Processes.Run(canceled, f.command("exit", "0")); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
	})
	t.Run("NamesAreFoundOnThePath", func(t *testing.T) {
		f := fixture(t)
		for _, name := range []string{"cmd", "CMD.exe"} {
			stdout, _, code := f.run(t, platform.Command{Path: name, Args: []string{"/c", "echo found"}})
			switch {
			case strings.TrimSpace(stdout) != "found":
				t.Errorf("%s: stdout is %q, want %q", name, strings.TrimSpace(stdout), "found")
			case code != 0:
				t.Errorf("%s: code is %v, want 0", name, code)
			}
		}
	})
	t.Run("CmdGetsItsOwnSyntax", func(t *testing.T) {
		f := fixture(t)
		stdout, _, code := f.run(t, platform.Command{Path: "cmd", Args: []string{"/c", "echo one&&exit", "3"}})
		switch {
		case strings.TrimSpace(stdout) != "one":
			t.Errorf("stdout is %q, want %q", strings.TrimSpace(stdout), "one")
		case code != 3:
			t.Errorf("code is %v, want 3", code)
		}
	})
	t.Run("TheEndOfTheContextKillsTheTree", func(t *testing.T) {
		f := fixture(t)
		r := f.begin(t, "childandwait", "forever")
		child := pid(t, r.line(t))
		handle, err := f.Platform.Processes.Open(child)
		check(t, err)
		defer handle.Close()
		r.cancel()
		r.wait(t)
		if !errors.Is(r.err, context.Canceled) {
			t.Errorf("the command: %d, %v", r.code, r.err)
		}
		expectEnded(t, handle)
	})
	t.Run("WhatACommandLeavesRunningEndsWithIt", func(t *testing.T) {
		f := fixture(t)
		r := f.begin(t, "child", "forever")
		child := pid(t, r.line(t))
		r.wait(t)
		if r.err != nil || r.code != 0 {
			t.Errorf("the command: %d, %v", r.code, r.err)
		}
		eventually(t, "the grandchild has gone", func() bool { return !f.lists(t, child) })
	})
	t.Run("ListOpenKill", func(t *testing.T) {
		f := fixture(t)
		r := f.begin(t, "childandwait", "forever")
		child := pid(t, r.line(t))
		var found *platform.Process
		list, err := f.Platform.Processes.List(t.Context())
		check(t, err)
		for i := range list {
			if list[i].PID == child {
				found = &list[i]
			}
		}
		if found == nil {
			t.Fatalf("process %d is not listed", child)
		}
		switch {
		case !strings.EqualFold(found.Name, base(f.Program)):
			t.Errorf("found.Name is %q, want %q", found.Name, base(f.Program))
		case !strings.EqualFold(found.Image, f.Program):
			t.Errorf("found.Image is %q, want %q", found.Image, f.Program)
		case found.Started.IsZero():
			t.Error("found.Started.IsZero() is true, want false")
		}
		if f.Has.ParentPID && found.ParentPID == 0 {
			t.Error("no parent")
		}
		if found.Handles == 0 || found.Threads == 0 {
			t.Errorf("%d handles, %d threads", found.Handles, found.Threads)
		}
		switch words := commandline.Split(found.CommandLine); {
		case len(words) < 2:
			t.Errorf("words has %d elements, want at least 2: %v", len(words), words)
		case base(words[0]) != base(f.Program):
			t.Errorf("base(words[0]) is %v, want %v", base(words[0]), base(f.Program))
		case words[len(words)-1] != "forever":
			t.Errorf("words[len(words)-1] is %q, want %q", words[len(words)-1], "forever")
		}
		handle, err := f.Platform.Processes.Open(child)
		check(t, err)
		waiting, cancel := context.WithCancel(t.Context())
		cancel()
		if err := handle.Wait(waiting); !errors.Is(err, context.Canceled) {
			t.Errorf("wait for a process that lives: %v", err)
		}
		check(t, handle.Kill())
		expectEnded(t, handle)
		check(t, handle.Kill()) // the process has ended already
		check(t, handle.Close())
		r.wait(t) // the parent waited for the child
		eventually(t, "it is no longer listed", func() bool { return !f.lists(t, child) })
	})
	t.Run("EnvironmentOfAnother", func(t *testing.T) { processEnvironment(t, fixture(t)) })
	t.Run("OpenOfNobody", func(t *testing.T) {
		f := fixture(t)
		if _, err := f.Platform.Processes.Open(0x7ffffff0); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
		}
	})
}

func pid(t *testing.T, line string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(line, 10, 32)
	check(t, err)
	return uint32(n)
}

func expectEnded(t *testing.T, handle platform.ProcessHandle) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := handle.Wait(ctx); err != nil {
		t.Errorf("the process lives on: %v", err)
	}
}

func (f Fixture) lists(t *testing.T, pid uint32) bool {
	t.Helper()
	list, err := f.Platform.Processes.List(t.Context())
	check(t, err)
	for _, p := range list {
		if p.PID == pid {
			return true
		}
	}
	return false
}

// base returns the last part of a path or of a test's name.
func base(path string) string { return path[strings.LastIndexAny(path, `\/`)+1:] }
