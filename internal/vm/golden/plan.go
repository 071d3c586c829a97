package golden

import (
	"context"
	"errors"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Plan is a build that would run.
type Plan struct {
	fleet.Outcome
	// Image has the state ready if it exists, and else missing.
	Image    Image             `json:"image"`
	Problems []finding.Problem `json:"problems"` // of your machine
	// Command starts the VM that installs; empty if the driver runs no program, or the image exists.
	Command []string `json:"command"`
}

// Plan returns what Build would do. It makes nothing, and remembers the hash of the ISO.
func (s *Images) Plan(ctx context.Context, document config.Document, o Options, r ui.Reporter) (Plan, error) {
	c, err := s.recipeOf(ctx, document, r)
	if err != nil {
		return Plan{}, err
	}
	defer c.close()
	made, err := s.get(c.key)
	if err == nil {
		return Plan{Outcome: fleet.NewOutcome(c.machine.Name, unchanged, nil), Image: s.report(c, made, "", "").Image}, nil
	}
	if !errors.Is(err, ErrUnknown) {
		return Plan{}, err
	}
	b, err := s.prepared(c, o, r)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{
		Outcome: fleet.NewOutcome(c.machine.Name, changed, nil),
		Image:   Image{Key: c.key, State: Missing, Content: c.content, Folder: s.folder(c.key), Disk: c.machine.Disk, UsedBy: []string{}},
	}
	checked := b.machine
	checked.Discs = nil
	plan.Problems = b.driver.Check(ctx, checked)
	if starts, ok := b.driver.(interface {
		CommandLine(m vm.Machine) ([]string, error)
	}); ok {
		plan.Command, err = starts.CommandLine(b.machine)
	}
	return plan, err
}
