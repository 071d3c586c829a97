package golden

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Plan is the result of a dry run of a build for one node file.
type Plan struct {
	fleet.Outcome
	// Image has the state ready if the image exists, and missing if it does not.
	Image    Image             `json:"image"`
	Problems []finding.Problem `json:"problems"` // of your machine
	// Command starts the VM that installs; empty if the driver runs no program, or the image exists.
	Command []string `json:"command"`
}

// Plan returns what Build would do. It makes nothing; it only stores the hash of the ISO.
func (s *Images) Plan(ctx context.Context, document config.Document, r ui.Reporter) (Plan, error) {
	c, err := s.recipeOf(ctx, document, r)
	if err != nil {
		return Plan{}, err
	}
	defer c.close()
	made, err := s.get(c.key)
	if err == nil {
		return Plan{Outcome: fleet.NewOutcome(c.machine.Name, unchanged, nil), Image: s.report(c, made, "", "").Image,
			Problems: []finding.Problem{}, Command: []string{}}, nil
	}
	if !errors.Is(err, ErrUnknown) {
		return Plan{}, err
	}
	b, err := s.prepared(c, r)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{
		Outcome: fleet.NewOutcome(c.machine.Name, changed, nil),
		Image: Image{
			Key: c.key, State: Missing, Content: c.content, Folder: s.folder(c.key), Disk: c.machine.Disk,
			UsedBy: []string{},
		},
		Command: []string{},
	}
	plan.Problems = append([]finding.Problem{}, b.driver.Check(ctx, b.checked())...)
	if starts, ok := b.driver.(interface {
		CommandLine(m vm.Machine) ([]string, error)
	}); ok {
		plan.Command, err = starts.CommandLine(b.machine)
	}
	return plan, err
}

// Of returns the plan p. If err is not nil, it returns a failed plan for the node with this name
// instead.
func (p Plan) Of(name string, err error) Plan {
	if err != nil {
		return Plan{
			Outcome: fleet.NewOutcome(name, fleet.Failed, err), Image: Image{UsedBy: []string{}},
			Problems: []finding.Problem{}, Command: []string{},
		}
	}
	return p
}

// Plans are the results of a dry run of builds for several node files.
type Plans struct {
	Builds []Plan `json:"builds"`
}

// WriteText writes what would be built. join quotes a command for the user's shell.
func (p Plans) WriteText(page *ui.Page, join func([]string) string) error {
	for _, plan := range p.Builds {
		if plan.Error != "" {
			continue
		}
		i := plan.Image
		text := "would be built"
		if i.State == Ready {
			text = "nothing to do: it exists"
		}
		_, err := fmt.Fprintf(page, "%s: golden image %s: %s: %s, build %s, %s\n  of %s\n  in %s\n",
			plan.Name, i.Key, text, i.Edition, i.Build, i.Language, i.ISO, i.Folder)
		if err != nil {
			return err
		}
		if err := vm.WriteProblems(page, plan.Problems); err != nil {
			return err
		}
		if len(plan.Command) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(page, "  %s\n", join(plan.Command)); err != nil {
			return err
		}
	}
	return nil
}
