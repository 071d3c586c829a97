//go:build unix

package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, command := range map[string]v1alpha1.Command{
		"shell": {Shell: "echo \"$GREETING you\" > out && test -z \"$(cat)\""},
		"list":  {Args: []string{"sh", "-c", "echo \"$GREETING $1\" > out", "sh", "you"}},
	} {
		r := Request{Name: "kubelet", Dir: dir, Command: command, Env: []string{"GREETING=hello"}}
		if err := Run(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		out, err := os.ReadFile(filepath.Join(dir, "out"))
		if err != nil || string(out) != "hello you\n" {
			t.Errorf("%s: wrote %q, %v", name, out, err)
		}
	}
}

func TestFailure(t *testing.T) {
	r := Request{Name: "kubelet", Dir: t.TempDir(), Command: v1alpha1.Command{Shell: "echo one; echo two >&2; exit 3"}}
	err := Run(t.Context(), r)
	var failed *FailedError
	switch {
	case !errors.As(err, &failed):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, failed)
	case failed.ExitCode != 3:
		t.Fatalf("failed.ExitCode is %v, want 3", failed.ExitCode)
	case failed.Output != "one\ntwo\n":
		t.Fatalf("failed.Output is %q, want %q", failed.Output, "one\ntwo\n")
	}
	if want := "build kubelet: `echo one; echo two >&2; exit 3` ended with exit code 3"; err.Error() != want {
		t.Errorf("says %q", err)
	}
	r.Command = v1alpha1.Command{Args: []string{"/does/not/exist"}}
	switch err := Run(t.Context(), r); {
	case !errors.As(err, &failed):
		t.Errorf("the error is %v, a %T, want a %T", err, err, failed)
	case failed.ExitCode != -1:
		t.Errorf("failed.ExitCode is %v, want -1", failed.ExitCode)
	case !errors.Is(err, os.ErrNotExist):
		t.Errorf("the error is %v, want %v", err, os.ErrNotExist)
	}
}

func TestLongOutputKeepsItsEnd(t *testing.T) {
	r := Request{Name: "k", Dir: t.TempDir(), Command: v1alpha1.Command{
		Shell: "head -c 2000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1",
	}}
	var failed *FailedError
	switch {
	case !errors.As(Run(t.Context(), r), &failed):
		t.Fatalf("the error is %v, a %T, want a %T", Run(t.Context(), r), Run(t.Context(), r), failed)
	case !strings.HasSuffix(failed.Output, "\nthe end\n"):
		t.Fatalf("failed.Output does not end with %q:\n%s", "\nthe end\n", failed.Output)
	case !strings.HasPrefix(failed.Output, "(the first 9514"):
		t.Fatalf("failed.Output does not begin with %q:\n%s", "(the first 9514", failed.Output)
	case len(failed.Output) > maxOutput+100:
		t.Fatalf("failed.Output has %d elements, want at most %d: %v", len(failed.Output), maxOutput+100, failed.Output)
	}
}

// The processes that the command started end with it, even those that ignore the interrupt.
func TestCancelEndsTheWholeTree(t *testing.T) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	r := Request{Name: "k", Dir: dir, Command: v1alpha1.Command{
		Shell: "trap '' INT; sh -c 'trap \"\" INT; echo $$ > ready; while :; do sleep 60; done' & wait",
	}}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("a newer one")
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, r) }()
	text, err := os.ReadFile(ready)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("ended with %v", err)
	}
	gone(t, pid)
}

// gone waits until a killed process no longer exists.
func gone(t *testing.T, pid int) {
	t.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// A server that a build leaves running does not delay the end of the build, and keeps running.
func TestABuildsServerIsLeftRunning(t *testing.T) {
	dir := t.TempDir()
	r := Request{Name: "k", Dir: dir, Command: v1alpha1.Command{Shell: "sleep 60 & echo $! > pid"}}
	if err := Run(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("it did not stay: %v", err)
	}
}
