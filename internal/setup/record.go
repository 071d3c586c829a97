package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// record lists what the steps have changed and Undo restores. A step writes an entry before it makes the change.
type record struct {
	Registry []valueRecord `json:"registry,omitempty"`
	// Paths and Processes are exclusions that Microsoft Defender did not have before.
	Paths     []string `json:"paths,omitempty"`
	Processes []string `json:"processes,omitempty"`
}

func (r record) empty() bool { return len(r.Registry)+len(r.Paths)+len(r.Processes) == 0 }

// load reads the record; an empty one if there is none.
func load(ctx context.Context, n *node.Node) (r record, err error) {
	content, err := smallfile.Read(ctx, n, layout.SetupRecord)
	if errors.Is(err, fault.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read what swdt setup has changed on the machine: %w; restore by hand what %s lists and "+
			"remove the file if it is damaged", err, layout.SetupRecord)
	}
	return r, nil
}

// save writes the record. Without entries, it removes the file.
func (r record) save(ctx context.Context, n *node.Node) error {
	if r.empty() {
		return smallfile.Remove(ctx, n, layout.SetupRecord)
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = smallfile.Replace(ctx, n, layout.SetupRecord, append(content, '\n'), "")
	}
	if err != nil {
		return fmt.Errorf("record what swdt setup changes on the machine: %w", err)
	}
	return nil
}

// Undo returns the steps that restore what the steps of setup have recorded on a node; none if they have recorded
// nothing. The other settings of a setup stay.
func Undo(ctx context.Context, n *node.Node) ([]plan.Step, error) {
	r, err := load(ctx, n)
	if err != nil {
		return nil, err
	}
	var steps []plan.Step
	if len(r.Paths)+len(r.Processes) > 0 {
		steps = append(steps, &defender{node: n})
	}
	if len(r.Registry) > 0 {
		steps = append(steps, registryOf(n, nil))
	}
	return plan.Undo(steps), nil
}

// undone makes a change of the record after it was undone on the machine.
func undone(ctx context.Context, n *node.Node, change func(*record)) (plan.Outcome, error) {
	r, err := load(ctx, n)
	if err != nil {
		return plan.Outcome{}, err
	}
	change(&r)
	return plan.Outcome{}, r.save(ctx, n)
}
