package kindcluster

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"
)

// mostOutput bounds how much of a failed command's output an error has, in lines: kubeadm
// writes hundreds, and its reason is at the end.
const mostOutput = 12

// CommandError is the failure of a command that kind ran, with the end of its output.
type CommandError struct {
	Doing  string
	Output []string // its last lines
	Err    error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%s: %v\n  %s", e.Doing, e.Err, strings.Join(e.Output, "\n  "))
}

func (e *CommandError) Unwrap() error { return e.Err }

// failed returns the error of something that kind did, or nil. kind's own error names only the
// command; the reason is in the command's output.
func failed(err error, format string, a ...any) error {
	if err == nil {
		return nil
	}
	doing := fmt.Sprintf(format, a...)
	run := exec.RunErrorForError(err)
	if run == nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	lines := strings.FieldsFunc(string(run.Output), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return fmt.Errorf("%s: %w", doing, err)
	}
	cause := run.Inner
	if cause == nil {
		cause = errors.New("a command failed")
	}
	return &CommandError{Doing: doing, Output: lines[max(len(lines)-mostOutput, 0):], Err: cause}
}
