package push

import (
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// UnknownComponentError reports a component that the node file does not have.
type UnknownComponentError struct {
	Name  string
	Known []string
}

func (e *UnknownComponentError) Error() string {
	return fmt.Sprintf("the node file has no component %q; it has %s", e.Name, strings.Join(e.Known, ", "))
}

// RolledBackError reports a transaction that failed and was undone: the old
// binaries are in place again.
type RolledBackError struct {
	Outcome *agentv1.SwapOutcome
	Restart bool // no file was to be exchanged
	// Settings reports that files and the command line of a service were to be exchanged, and no binary.
	Settings bool
}

func (e *RolledBackError) Error() string {
	var text strings.Builder
	if name := e.Outcome.GetFailedComponent(); name != "" {
		text.WriteString(name + ": ")
	}
	text.WriteString(e.Outcome.GetMessage() + "; " + e.aftermath())
	return text.String()
}

// aftermath returns a text about the state after the failure, without the reason of the failure.
func (e *RolledBackError) aftermath() string {
	var text strings.Builder
	switch {
	case e.Restart && e.Complete():
		text.WriteString("all that ran before runs again")
	case e.Restart:
		text.WriteString("not everything runs that ran before: see `swdt status`")
	case e.Settings && e.Complete():
		text.WriteString("the previous settings are back")
	case e.Settings:
		text.WriteString("the previous settings are back, but not everything runs that ran before: see `swdt status`")
	case e.Complete():
		text.WriteString("the node is back to the previous binaries")
	default:
		text.WriteString("the previous binaries are back, but not everything runs that ran before: see `swdt status`")
	}
	for _, c := range e.Outcome.GetComponents() {
		if c.GetName() == e.Outcome.GetFailedComponent() && len(c.GetLogLines()) > 0 {
			text.WriteString("\nits last log lines:\n  " + strings.Join(c.GetLogLines(), "\n  "))
		}
	}
	return text.String()
}

// ShownError is a failure whose reason the result already shows on the lines of components. So the
// text of a ShownError omits the reason.
type ShownError struct {
	Components []string
	Err        error
}

// Shown returns the error to print below a node's result: a *ShownError if the result, printed as
// text, already contains the whole reason, else err.
func Shown(n NodeResult, err error) error {
	var failed []string
	for _, c := range n.Components {
		switch {
		case err == nil || !c.cause || c.Message == "":
		case strings.Contains(c.Message, "\n"): // the line has only its beginning
			return err
		default:
			failed = append(failed, c.Name)
		}
	}
	if len(failed) == 0 {
		return err
	}
	return &ShownError{Components: failed, Err: err}
}

func (e *ShownError) Error() string {
	names := strings.Join(e.Components, " and ")
	var back *RolledBackError
	switch {
	case errors.As(e.Err, &back):
		return names + " failed; " + back.aftermath()
	case len(e.Components) > 1:
		return names + " failed: see their lines"
	}
	return names + " failed: see its line"
}

func (e *ShownError) Unwrap() error { return e.Err }

// Complete reports whether everything that ran before runs again.
func (e *RolledBackError) Complete() bool {
	return e.Outcome.GetResult() == agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK
}

func (e *RolledBackError) result() Result {
	if e.Complete() {
		return RolledBack
	}
	return Failed
}

// InterruptedError reports that the command ended, or lost the node for good, while
// the node was at work. The node finishes by itself.
type InterruptedError struct{ Err error }

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("%v: the node finishes the transaction by itself; `swdt status` shows how it ended", e.Err)
}

func (e *InterruptedError) Unwrap() error { return e.Err }

// SupersededError reports a push that was abandoned before the node was changed,
// because its binary is outdated.
type SupersededError struct{}

func (*SupersededError) Error() string { return "abandoned for a newer binary; nothing was changed" }

// ProtectedError reports a file that was not replaced, since overwrite is false.
type ProtectedError struct{ Path string }

func (e *ProtectedError) Error() string {
	return fmt.Sprintf("the file %s on the node differs, and overwrite is false: allow overwriting, or remove the file",
		e.Path)
}

// VersionError reports a binary whose version is not the version in the node file.
type VersionError struct{ Wanted, Got string }

func (e *VersionError) Error() string {
	got := "reports " + e.Got
	if e.Got == "" {
		got = "does not report its version"
	}
	return fmt.Sprintf("the binary %s, but the node file wants version %s: correct version or sourceURL", got, e.Wanted)
}

// IsMistake reports whether err means that the binary or its entry in the node file does not fit the node, so that
// another push of both fails in the same way. Nothing was changed.
func IsMistake(err error) bool {
	var (
		protected *ProtectedError
		program   *ProgramError
		version   *VersionError
		unknown   *UnknownComponentError
	)
	return errors.As(err, &protected) || errors.As(err, &program) || errors.As(err, &version) || errors.As(err, &unknown)
}
