//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// limit bounds any one command, unless it has its own.
const limit = 4 * time.Minute

// command is what to run.
type command struct {
	name  string
	args  []string
	env   []string // beside this process's own
	limit time.Duration
}

func words(name string, args ...string) command { return command{name: name, args: args} }

func (c command) String() string { return c.name + " " + strings.Join(c.args, " ") }

// taken is what a command took.
type taken struct {
	seconds float64
	cpu     float64 // seconds of all processors together
	memory  int64   // at most, of the largest process
	stdout  []byte
}

// run runs a command to its end, or ends it and all it started at the limit.
func (c command) run(ctx context.Context) (taken, error) {
	most := cmp.Or(c.limit, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, most, &tooLongError{most})
	defer cancel()
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begun := time.Now()
	err := cmd.Run()
	t := taken{seconds: time.Since(begun).Seconds(), stdout: stdout.Bytes()}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return t, cause
		}
		return t, fmt.Errorf("%s: %w\n%s", c, err, bytes.TrimSpace(stderr.Bytes()))
	}
	t.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.memory = usage.Maxrss << 10
	}
	return t, nil
}

// tooLongError is a command that was ended at its limit.
type tooLongError struct{ limit time.Duration }

func (e *tooLongError) Error() string { return fmt.Sprintf("more than %.0f s", e.limit.Seconds()) }

// output runs a command and returns what it printed.
func output(ctx context.Context, name string, args ...string) (string, error) {
	t, err := words(name, args...).run(ctx)
	return strings.TrimSpace(string(t.stdout)), err
}

// slow is from when on something is measured only once.
const slow = 15.0

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// hashFile never has the file in memory: a process inherits what its parent had
// there as its own peak.
func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// expectSame is the check that a tool did its work.
func expectSame(got, want string) error {
	a, err := hashFile(got)
	if err != nil {
		return err
	}
	b, err := hashFile(want)
	if err != nil {
		return err
	}
	if a != b {
		return fmt.Errorf("%s is not %s", got, want)
	}
	return nil
}

func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
