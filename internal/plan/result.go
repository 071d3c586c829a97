package plan

import (
	"fmt"
	"strings"
)

// State is the result of a step.
type State string

const (
	OK             State = "ok"             // nothing to do
	Changed        State = "changed"        // done
	Failed         State = "failed"         // tried without success, or could not even be compared
	Skipped        State = "skipped"        // not tried, for example because of a dry run or an earlier failure
	RebootRequired State = "rebootRequired" // done, but takes effect only after a reboot, which was not allowed
)

// StepResult is the result of one step, as printed.
type StepResult struct {
	Name    string `json:"name"`
	Change  string `json:"change"`
	Detail  string `json:"detail"` // the full text that Change shortens; usually empty
	State   State  `json:"state"`
	Message string `json:"message"`
}

// FailedError reports the failed steps of a node, with their errors.
type FailedError struct {
	Steps []string
	Errs  []error // the error of each step
}

func (e *FailedError) Error() string {
	if len(e.Steps) == 1 {
		return fmt.Sprintf("%s: %v", e.Steps[0], e.Errs[0])
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d steps failed:", len(e.Steps))
	for i := 0; i < len(e.Steps); {
		first, why := i, e.Errs[i].Error()
		for i++; i < len(e.Steps) && e.Errs[i].Error() == why; i++ {
		}
		fmt.Fprintf(&text, "\n  %s: %s", strings.Join(e.Steps[first:i], ", "), strings.ReplaceAll(why, "\n", "\n    "))
	}
	return text.String()
}

// Unwrap makes errors.Is and errors.As inspect every step's error.
func (e *FailedError) Unwrap() []error { return e.Errs }

// RebootRequiredError reports that a node must be rebooted, which was not allowed.
type RebootRequiredError struct{ Steps []string }

func (e *RebootRequiredError) Error() string {
	return fmt.Sprintf("%s: takes effect after a reboot; reboot the node and run the command again, or let swdt do "+
		"it with --allow-reboot",
		strings.Join(e.Steps, ", "))
}
