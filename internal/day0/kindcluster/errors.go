package kindcluster

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"
)

// mostOutput is the maximum number of lines of a failed command's output in an error. kubeadm
// writes hundreds of lines, and the reason is in the last lines.
const mostOutput = 12

// CommandError is the failure of a command that kind ran, with the end of its output.
type CommandError struct {
	Doing  string
	Output []string // the last lines of the command's output
	Err    error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%s: %v\n  %s", e.Doing, e.Err, strings.Join(e.Output, "\n  "))
}

func (e *CommandError) Unwrap() error { return e.Err }

// failed returns the error of an operation of kind; nil if err is nil. format describes the operation.
// kind's own error names only the command that failed, so failed adds the end of the command's
// output, which contains the reason.
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
