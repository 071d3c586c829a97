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

// limit is the time after which a command without its own limit is ended.
const limit = 4 * time.Minute

// command describes a command to run.
type command struct {
	name  string
	args  []string
	env   []string // added to this process's environment
	limit time.Duration
}

func words(name string, args ...string) command { return command{name: name, args: args} }

func (c command) String() string { return c.name + " " + strings.Join(c.args, " ") }

// taken holds the time and memory that a command used.
type taken struct {
	seconds float64
	cpu     float64 // seconds of all processors together
	memory  int64   // the maximum resident memory of the largest process, in bytes
	stdout  []byte
}

// run runs a command to its end. At the limit it ends the command and every process
// that the command started.
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

// tooLongError reports that a command was ended at its limit.
type tooLongError struct{ limit time.Duration }

func (e *tooLongError) Error() string { return fmt.Sprintf("more than %.0f s", e.limit.Seconds()) }

// output runs a command and returns what it printed.
func output(ctx context.Context, name string, args ...string) (string, error) {
	t, err := words(name, args...).run(ctx)
	return strings.TrimSpace(string(t.stdout)), err
}

// slow is the time above which a command is measured only once, in seconds.
const slow = 15.0

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// hashFile returns the hash of a file. It does not read the whole file into memory, because the
// peak of this process's memory would count as the peak of the commands that it starts.
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

// expectSame returns an error if two files differ, which means that a tool did not do its work.
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
