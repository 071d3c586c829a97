// Package setup brings a node to the state that spec.setup of its node file
// describes, as a list of small idempotent steps. What the file does not mention
// is left alone.
package setup

import (
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/plan"
)

// Options are what the steps need beside the node file.
type Options struct {
	// Resolve turns a path of the node file into one of this machine.
	Resolve func(path string) string
}

// Steps lists what spec asks for, in the order in which it is done.
func Steps(spec v1alpha1.Setup, opts Options) []plan.Step {
	return nil
}
