// Package plan runs an ordered list of small idempotent steps against a node.
// A step can say what it would change without changing it, so a dry run is the
// same code, and a second run finds nothing to do.
package plan

import (
	"context"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Change is what a step would do. The zero Change is nothing to do.
type Change struct {
	// Needed is whether anything differs from what is wanted.
	Needed bool
	// Summary is one line for people: "enable Remote Desktop".
	Summary string
}

// Outcome is what a step did.
type Outcome struct {
	Message        string // beyond the change's summary; usually empty
	RebootRequired bool   // takes effect, or the next step can run, only after a reboot
}

// Step is one idempotent change of a node.
type Step interface {
	Name() string
	// Plan compares the node with what is wanted; it changes nothing.
	Plan(ctx context.Context, n *node.Node) (Change, error)
	// Apply makes the change that Plan found.
	Apply(ctx context.Context, n *node.Node, r ui.Reporter) (Outcome, error)
}
