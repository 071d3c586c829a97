package up

import (
	"context"

	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/ui"
)

// check returns the function of the stage that tests the cluster with pods on its Windows nodes.
// The stages in before must succeed first: the control plane, the pod network and the joins.
func (w *work) check(before []*stage) func(context.Context, ui.Reporter) (done, error) {
	return func(ctx context.Context, _ ui.Reporter) (done, error) {
		if result, ok := w.afterwards(before...); ok {
			return done{message: "test pods on the Windows nodes " + result.message}, nil
		}
		found, err := w.controlPlane(ctx)
		if err != nil {
			return done{}, err
		}
		options := *w.Smoke
		options.Reporter = w.Reporter
		if w.DryRun {
			_, err := smoke.NewPlan(ctx, found.api, options)
			return done{message: "test pods on the Windows nodes"}, err
		}
		report, err := smoke.Run(ctx, found.api, options)
		if len(report.Nodes) > 0 {
			w.checked = &report
		}
		return done{message: report.Sentence()}, err
	}
}
