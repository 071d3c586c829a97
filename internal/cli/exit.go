package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/existing"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// Exit codes, with the same meaning for every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitRolledBack  = 4
	exitFinding     = 5
	exitAtWork      = 6
	exitInterrupted = 130
)

const exitCodesHelp = `swdt ends with one of these, whatever the command:

  0    done, or there was nothing to do
  1    failed. A push, or a join that was not begun, has changed nothing; other
       commands report how far they came, and the next run goes on from there.
       It is also 1 if the answer to a question (reset, hcs kill, sandbox down
       --all) was no: nothing was changed
  2    wrong usage or a wrong node file; no node was contacted
  3    a node could not be reached or not be trusted (host key, login), or the API
       server of spec.controlPlane.existing, of --via kubernetes or of a fleet, not
       be reached or used
  4    failed, and the previous binaries were put back on the node
  5    a check found a problem, or a test failed
  6    swdt ended while the node was still at work, since --timeout passed or the
       connection was lost for good: the node finishes or undoes the push by
       itself, and swdt status shows how it ended
  130  interrupted (Ctrl-C)

With several nodes the code is 0 if all succeeded, the code of the failed nodes
if all of them have the same code, and 1 if their codes differ; the summary
lists them. A failed node does not keep swdt from working on the others.

exec, shell and powershell end with the exit code of the program that they ran:
a code from 0 to 255 as it is, and 1 for any other (codes of Windows have 32
bits). If the program could not be run, they end with one of the codes above.
`

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// exitError ends swdt with a code. If err is set, finish still has to print err.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// InterruptedError is the cause of a context that a signal ended.
type InterruptedError = interrupt.Error

// Interruptible returns a context that ends at Ctrl-C. If the command does not end soon
// after Ctrl-C, Interruptible says so on stderr, and calls exit.
func Interruptible(parent context.Context, stderr io.Writer, exit func(code int)) (ctx context.Context, stop func()) {
	return interrupt.Context(parent, func() {
		fmt.Fprintln(stderr, "swdt: interrupted; what it was doing is unfinished")
		exit(exitInterrupted)
	})
}

// cleanUpLimit is how long a command that works on VMs has after Ctrl-C to remove what it has
// made. The work itself ends at once, but the end of a VM takes seconds, or longer on a busy
// machine. cleanUpLimit is longer than the limits of all such removals.
const cleanUpLimit = 2 * time.Minute

// finish prints the error, once, and chooses the exit code.
func (a *app) finish(ctx context.Context, err error) int {
	var interrupted *InterruptedError
	if errors.As(context.Cause(ctx), &interrupted) || errors.As(err, &interrupted) {
		text := "interrupted"
		var going *push.InterruptedError
		if errors.As(err, &going) {
			text = a.remedies("",
				"interrupted; the node finishes the transaction by itself, `swdt status` shows how it ended")
		}
		fmt.Fprintln(a.streams.Err, "swdt: "+text)
		return exitInterrupted
	}
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	if text := a.message(err); text != "" {
		fmt.Fprintln(a.streams.Err, "swdt: "+ui.PrintableLines(text))
	}
	return code
}

func exitCode(err error) int {
	var (
		exit        *exitError
		usage       *usageError
		badConfig   *config.Error
		kubeconfig  *cluster.ConfigError
		atWork      *push.InterruptedError
		several     *fleet.Error
		unreachable *node.UnreachableError
		unusable    *existing.UnusableError
		rolledBack  *push.RolledBackError
		program     *push.ProgramError
	)
	switch {
	case errors.As(err, &several): // first, since the errors of its nodes may have the types below
		return commonCode(several)
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage), errors.As(err, &badConfig), errors.As(err, &kubeconfig), errors.As(err, &program):
		return exitUsage
	case errors.As(err, &atWork): // before unreachable, since a lost connection may have caused this error
		return exitAtWork
	case errors.As(err, &rolledBack):
		return exitRolledBack
	case errors.As(err, &unreachable), errors.As(err, &unusable):
		return exitUnreachable
	}
	return exitFailed
}

// commonCode returns the exit code of the failed nodes if all of them have the same code,
// and otherwise 1.
func commonCode(several *fleet.Error) int {
	code := exitDone
	for _, failure := range several.Failed {
		this := exitCode(failure.Err)
		if code != exitDone && this != code {
			return exitFailed
		}
		code = this
	}
	return code
}

// message returns the text of an error, or "" if there is nothing left to print.
func (a *app) message(err error) string {
	var several *fleet.Error
	var exit *exitError
	var badConfig *config.Error
	found := errors.As(err, &several)
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case ok && err != error(several) && (found || errors.As(err, &exit)): // several joined errors
		return a.messages(joined.Unwrap())
	case found:
		return a.failures(several)
	case errors.As(err, &exit) && exit.err == nil:
		return ""
	case errors.As(err, &badConfig) && len(badConfig.Problems) > 1:
		return fmt.Sprintf("%d problems:\n  %s", len(badConfig.Problems), strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return a.remedied("", err).Error()
}

// messages returns the texts of several errors, one per line.
func (a *app) messages(errs []error) string {
	var texts []string
	for _, err := range errs {
		if text := a.message(err); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// failures names every node that failed, with the reason.
func (a *app) failures(several *fleet.Error) string {
	if several.Total == 1 {
		return a.named(several.Failed[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d nodes failed:", len(several.Failed), several.Total)
	for _, failure := range several.Failed {
		b.WriteString("\n  " + strings.ReplaceAll(a.named(failure), "\n", "\n    "))
	}
	return b.String()
}

// named returns the text of a failure, which names the node once.
func (a *app) named(failure fleet.Failure) string {
	text := a.remedied(failure.Name, failure.Err).Error()
	if namesVM(text, failure.Name) {
		return text
	}
	return failure.Name + ": " + text
}

// namesVM reports whether a text has the words "VM NAME", as most errors about VMs do.
func namesVM(text, name string) bool {
	_, after, found := strings.Cut(text, "VM "+name)
	return found && (after == "" || strings.ContainsAny(after[:1], " :;,"))
}

// timeoutError is the cause of a context that ended because --timeout passed.
type timeoutError struct{ flag string }

func (e *timeoutError) Error() string {
	return "not done within --timeout " + e.flag + "; give it more time, or look at the node with -v"
}
