//go:build linux || darwin

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
)

// seat is a user at a terminal, at which swdt runs as a process of its own.
type seat struct {
	*workplace
	*terminal
	before  *term.State
	command *exec.Cmd
}

// sitAt runs swdt with these arguments at a new terminal.
func sitAt(t *testing.T, w *workplace, args ...string) *seat {
	t.Helper()
	return sitWith(t, w, append([]string{"-c", filepath.Join(w.folder, "swdt.yaml")}, args...)...)
}

// sitWith is sitAt without the node file.
func sitWith(t *testing.T, w *workplace, args ...string) *seat {
	t.Helper()
	s := &seat{workplace: w, terminal: newTerminal(t, 30, 100)}
	var err error
	if s.before, err = term.GetState(int(s.File.Fd())); err != nil {
		t.Fatal(err)
	}
	s.command = exec.Command("swdt", args...)
	s.command.Env = append(os.Environ(), w.environment()...)
	s.command.Stdin, s.command.Stdout, s.command.Stderr = s.File, s.File, s.File
	s.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.command.Process.Kill() }) // it has ended, unless the test failed
	return s
}

// environment keeps the files of swdt in the workplace.
func (w *workplace) environment() []string {
	return []string{"XDG_CACHE_HOME=" + filepath.Join(w.folder, "cache"), "HOME=" + w.folder,
		"XDG_STATE_HOME=" + filepath.Join(w.folder, "state"), "SSH_AUTH_SOCK=", "GORACE=atexit_sleep_ms=0"}
}

// ends waits for the end of swdt, and requires an exit code and the terminal as it was.
func (s *seat) ends(code int) {
	s.terminal.t.Helper()
	err := s.command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.terminal.t.Fatal(err)
	}
	if got := s.command.ProcessState.ExitCode(); got != code {
		s.terminal.t.Errorf("exit code %d, want %d:\n%q", got, code, s.text())
	}
	after, err := term.GetState(int(s.File.Fd()))
	if err != nil {
		s.terminal.t.Fatal(err)
	}
	if *after != *s.before {
		s.terminal.t.Errorf("the terminal is not as it was: %v, it was %v", *after, *s.before)
	}
}

// shows waits until the terminal has shown a text so many times.
func (s *seat) shows(text string, times int) {
	s.terminal.t.Helper()
	s.await(text, func(shown string) bool { return strings.Count(shown, text) >= times })
}

const (
	cmdPrompt        = `C:\Users\Administrator>`
	powershellPrompt = `PS C:\Users\Administrator> `
)

// largePaste returns a text of more than 100 kB.
func largePaste() string {
	return strings.Repeat("0123456789 the quick brown fox jumps over the lazy dog, äöü €\r", 1600)
}

// pastes writes the text of largePaste to a file of the node, in a shell that is cmd.
func (s *seat) pastes(path string) {
	s.terminal.t.Helper()
	s.typed("copy con " + path + "\r")
	s.typed(largePaste())
	s.typed("\x1a\r")
	s.shows("file(s) copied", 1)
}

// hasSize changes the terminal's size and waits until programs in a shell, which is cmd, see that size.
func (s *seat) hasSize(rows, columns uint16) {
	s.terminal.t.Helper()
	if err := pty.Setsize(s.keyboard, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		s.terminal.t.Fatal(err)
	}
	want := fmt.Sprintf("Lines:          %d\r\n    Columns:        %d", rows, columns)
	prompts := strings.Count(s.text(), cmdPrompt)
	s.await("the size", func(text string) bool {
		if n := strings.Count(text, cmdPrompt); n >= prompts {
			prompts = n + 1
			s.typed("mode con\r")
		}
		return strings.Contains(text, want)
	})
}

func TestShell(t *testing.T) {
	w := newWorkplace(t)
	t.Run("PowerShell is the default, its exit code is swdt's", func(t *testing.T) {
		s := sitAt(t, w, "shell")
		s.shows(powershellPrompt, 1)
		s.typed("hostname\r")
		s.shows(powershellPrompt, 2)
		s.typed("exit 7\r")
		s.ends(7)
	})
	t.Run("the program has the terminal's size, also when it changes", func(t *testing.T) {
		s := sitAt(t, w, "shell", "--shell", "cmd")
		s.shows(cmdPrompt, 1)
		s.hasSize(41, 123)
		s.typed("exit\r")
		s.ends(0)
	})
	t.Run("Ctrl-C goes to the program", func(t *testing.T) {
		s := sitAt(t, w, "shell", "--shell", "cmd")
		s.shows(cmdPrompt, 1)
		s.typed("ping -t localhost\r")
		s.shows("Pinging localhost", 1)
		s.typed("\x03")
		s.shows(cmdPrompt, 2)
		s.typed("exit 3\r")
		s.ends(3)
	})
	t.Run("a large paste arrives whole", func(t *testing.T) {
		s := sitAt(t, w, "shell", "--shell", "cmd")
		s.shows(cmdPrompt, 1)
		s.pastes(`C:\paste.txt`)
		s.typed("exit\r")
		s.ends(0)
		want := strings.ReplaceAll(largePaste(), "\r", "\r\n")
		if got, err := w.machine.ReadFile(`C:\paste.txt`); err != nil || string(got) != want {
			t.Errorf("%d bytes arrived, of %d: %v: %s", len(got), len(want), err, cmp.Diff(want, string(got)))
		}
	})
	t.Run("exec -it", func(t *testing.T) {
		s := sitAt(t, w, "exec", "-n", "win", "-it", "--", "cmd", "/c", "mode con")
		s.shows("Columns:        100", 1)
		s.ends(0)
	})
}

// Whatever ends a session, the terminal is as before.
func TestShellPutsTheTerminalBack(t *testing.T) {
	w := newWorkplace(t)
	for _, c := range []struct {
		name string
		end  func(s *seat)
		code int
	}{
		{"the escape key", func(s *seat) { s.typed("\x1d\x1d\x1d") }, 130},
		{"SIGTERM", func(s *seat) { s.signal(syscall.SIGTERM) }, 130},
		{"SIGINT", func(s *seat) { s.signal(syscall.SIGINT) }, 130},
		{"SIGHUP", func(s *seat) { s.signal(syscall.SIGHUP) }, 130},
		{"SIGQUIT", func(s *seat) { s.signal(syscall.SIGQUIT) }, 130},
		{"the agent is killed", func(s *seat) { s.machine.Kill("swdt-agent.exe") }, 1},
		{"the connection is cut", func(s *seat) { s.machine.Kill("sshd-session.exe") }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sitAt(t, w, "shell", "--shell", "cmd")
			s.shows(cmdPrompt, 1)
			s.typed("ping -t localhost\r")
			s.shows("Pinging localhost", 1)
			c.end(s)
			s.ends(c.code)
			w.endsOnNode("ping.exe")
		})
	}
}

// endsOnNode waits until the node has no process of that name.
func (w *workplace) endsOnNode(name string) {
	w.t.Helper()
	looker := w.machine.Spawn("looker.exe")
	defer looker.Exit()
	err := wait.Condition{Name: name + " to end", Interval: 10 * time.Millisecond, Limit: hung,
		Look: func(ctx context.Context) error {
			all, err := looker.Platform.Processes.List(ctx)
			if slices.ContainsFunc(all, func(p platform.Process) bool { return p.Name == name }) {
				return errors.New("it runs")
			}
			return err
		}}.Wait(w.t.Context())
	if err != nil {
		w.t.Error(err)
	}
}

func (s *seat) signal(signal os.Signal) {
	s.terminal.t.Helper()
	if err := s.command.Process.Signal(signal); err != nil {
		s.terminal.t.Fatal(err)
	}
}

// Without a terminal there is no shell, and no node is contacted.
func TestShellNeedsATerminal(t *testing.T) {
	w := newWorkplace(t)
	for _, args := range [][]string{{"shell"}, {"exec", "-it", "-n", "win", "--", "cmd"}} {
		story := &lines{}
		if code, _ := w.swdt(t.Context(), story, args...); code != 2 {
			t.Errorf("%q: exit code %d, want 2", args, code)
		}
		if !strings.Contains(story.String(), "no terminal") || strings.Contains(story.String(), "connecting") {
			t.Errorf("%q: %s", args, story)
		}
	}
}

// The way through the cluster has the same terminal.
func TestShellThroughKubernetes(t *testing.T) {
	w := &workplace{t: t, folder: t.TempDir()}
	run := func(args ...string) {
		t.Helper()
		command := exec.Command("swdt", args...)
		command.Env = append(os.Environ(), w.environment()...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("swdt %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	run("sandbox", "up", "--name", "win-1", "--cluster")
	t.Cleanup(func() { run("sandbox", "down", "--all", "--yes") })
	box := filepath.Join(w.folder, "state", "swdt", "sandbox", "win-1")
	run("join", "-c", filepath.Join(box, "node.yaml"), "--kubeconfig", filepath.Join(box, "admin.conf"), "--allow-reboot")
	way := "kubernetes,keep,kubeconfig=" + filepath.Join(box, "admin.conf")

	s := sitWith(t, w, "shell", "--shell", "cmd", "-n", "win-1", "--via", way)
	s.shows(cmdPrompt, 1)
	s.typed("mode con\r")
	s.shows("Columns:        100", 1)
	s.typed("ping -t localhost\r")
	s.shows("Pinging localhost", 1)
	s.typed("\x03")
	s.shows(cmdPrompt, 3)
	s.hasSize(41, 123)
	s.typed("exit 7\r")
	s.ends(7)

	s = sitWith(t, w, "shell", "--shell", "cmd", "-n", "win-1", "--via", way)
	s.shows(cmdPrompt, 1)
	s.pastes(`C:\paste.txt`)
	s.typed("exit 3\r")
	s.ends(3)
	run("cp", "-n", "win-1", "--via", way, `node:C:\paste.txt`, filepath.Join(w.folder, "paste.txt"))
	got, err := os.ReadFile(filepath.Join(w.folder, "paste.txt"))
	if want := strings.ReplaceAll(largePaste(), "\r", "\r\n"); err != nil || string(got) != want {
		t.Errorf("%d bytes of the paste arrived, of %d: %v", len(got), len(want), err)
	}

	// The shell ends kubelet, through which its own stream goes.
	s = sitWith(t, w, "shell", "--shell", "cmd", "-n", "win-1", "--via", way)
	s.shows(cmdPrompt, 1)
	s.typed("sc stop kubelet\r")
	s.ends(1)
}
