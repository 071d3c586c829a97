package selftest

import (
	"context"
	"fmt"
)

// Grade states how trying a claim changes the node.
type Grade string

const (
	Reads    Grade = "reads"    // changes nothing
	Makes    Grade = "makes"    // makes things of its own, and removes them
	Settings Grade = "settings" // changes settings of the node for a moment, with --change-settings
	Reboots  Grade = "reboots"  // restarts the node, with --allow-reboot
)

// Claim is one promise of swdt that a node can prove or disprove.
type Claim struct {
	ID     string
	Title  string
	Proves string // a sentence: what is true if the claim passes
	Grade  Grade

	try   func(ctx context.Context, t *trial) error
	makes []artifact
}

// Outcome is the result of a claim.
type Outcome string

const (
	Passed     Outcome = "passed"
	Failed     Outcome = "failed"
	Impossible Outcome = "impossible" // the node lacks what the claim is about
	NotRun     Outcome = "notRun"     // the user did not ask for it, or the run ended before
)

// impossibleError ends a claim that this node can neither prove nor disprove.
type impossibleError struct{ reason string }

func (e *impossibleError) Error() string { return e.reason }

func impossible(format string, args ...any) error {
	return &impossibleError{fmt.Sprintf(format, args...)}
}

// Answer is one thing that the node answered while a claim was tried. It is the same in each run on
// the same node: times, process ids and the like are left out.
type Answer struct {
	Key   string `json:"key"`
	Kind  string `json:"kind"` // text, number, boolean or list
	Value string `json:"value"`
}
