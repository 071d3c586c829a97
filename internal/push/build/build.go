// Package build runs a provisioner's build command on your machine. When a build is cancelled,
// every process that the command started, including compilers and linkers, ends too.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/localfile"
)

// Request is one build.
type Request struct {
	Name    string // printed
	Dir     string
	Command v1alpha1.Command
	// Env has NAME=value pairs that are added to this process's environment. If two pairs have the
	// same name, the last one applies.
	Env []string
}

// FailedError reports a command that could not be run or did not succeed.
type FailedError struct {
	Request  Request
	ExitCode int    // -1: the command did not run, or was ended by a signal
	Output   string // both streams interleaved; only the last MiB
	Err      error
}

func (e *FailedError) Error() string {
	if e.ExitCode < 0 {
		return fmt.Sprintf("build %s: %v", e.Request.Name, e.Err)
	}
	return fmt.Sprintf("build %s: %s ended with exit code %d", e.Request.Name, e.Request.short(), e.ExitCode)
}

func (e *FailedError) Unwrap() error { return e.Err }

// short returns the command in one line of readable length.
func (r Request) short() string {
	text := strings.Join(strings.Fields(r.Command.String()), " ")
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:60]) + "…"
	}
	return "`" + text + "`"
}

// maxOutput is the number of bytes of the output that are kept.
const maxOutput = 1 << 20

// Run runs the command to its end. Its output is kept for the error and not printed.
// When ctx ends, Run returns ctx's error once no process of the command is running.
func Run(ctx context.Context, r Request) error {
	// The output goes to a file, not to a pipe: Run would have to wait until every process has
	// closed the pipe, and the command may leave a process running, such as a compile server.
	scratch, err := localfile.Scratch()
	if err != nil {
		return fmt.Errorf("build %s: keep the output: %w", r.Name, err)
	}
	defer scratch.Remove()
	output, err := os.OpenFile(filepath.Join(scratch.Path, "output"), os.O_RDWR|os.O_CREATE|os.O_APPEND, localfile.Private)
	if err != nil {
		return fmt.Errorf("build %s: keep the output: %w", r.Name, err)
	}
	defer output.Close()
	cmd := command(r)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(), r.Env...)
	cmd.Stdout, cmd.Stderr = output, output
	err = runTree(ctx, cmd)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		failed := &FailedError{Request: r, ExitCode: -1, Output: tail(output), Err: err}
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			failed.ExitCode = exit.ExitCode()
		}
		return failed
	}
	return nil
}

// command returns the exec.Cmd of a request. The command gets no stdin, since other parts of swdt
// may read from the terminal.
func command(r Request) *exec.Cmd {
	if r.Command.Args != nil {
		return exec.Command(r.Command.Args[0], r.Command.Args[1:]...)
	}
	return shell(r.Command.Shell)
}

// tail returns the end of the output, with a note about the omitted part.
func tail(output *os.File) string {
	size, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	begin := max(0, size-maxOutput)
	text, err := io.ReadAll(io.NewSectionReader(output, begin, size-begin))
	if err != nil && len(text) == 0 {
		return ""
	}
	if begin > 0 {
		return fmt.Sprintf("(the first %d bytes are left out)\n%s", begin, text)
	}
	return string(text)
}
