package podnetwork

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// affinityStep turns strictAffinity on, once Calico's API server runs.
type affinityStep struct{ work *work }

func (s *affinityStep) Name() string { return "strict affinity" }

func (s *affinityStep) Plan(ctx context.Context) (plan.Change, error) {
	is, err := s.work.server.Affinity(ctx)
	switch {
	case err != nil:
		return plan.Change{}, err
	case is.Strict:
		return plan.Change{Summary: "strictAffinity is on"}, nil
	case !is.Known:
		return plan.Change{Needed: true, Summary: "wait for Calico's API server, turn strictAffinity on"}, nil
	}
	return plan.Change{Needed: true, Summary: "turn strictAffinity on",
		Detail: "change IPAMConfiguration default\n  ~ .spec.strictAffinity: false → true"}, nil
}

func (s *affinityStep) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	conditions := []cni.Condition{s.work.server.OperatorAvailable(), s.work.server.CalicoAPI()}
	if s.work.options.NoWait {
		if err := conditions[1].Look(ctx); err != nil {
			return plan.Outcome{}, fmt.Errorf("%s: %w; run the command again once it runs, or let it wait without --no-wait",
				conditions[1].Name, err)
		}
		return plan.Outcome{}, s.work.server.SetStrictAffinity(ctx)
	}
	err := cni.Await(ctx, conditions, s.work.options.Wait, func(state string) { r.Info("waiting for %s", state) })
	if err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, s.work.server.SetStrictAffinity(ctx)
}

// readyStep waits until the pod network works.
type readyStep struct{ work *work }

func (s *readyStep) Name() string { return "ready" }

func (s *readyStep) conditions() []cni.Condition {
	return s.work.server.Conditions(s.work.options.Settings.Network, s.work.facts, s.work.kubeProxyForm())
}

func (s *readyStep) Plan(ctx context.Context) (plan.Change, error) {
	var missing, reasons []string
	for _, c := range s.conditions() {
		err := c.Look(ctx)
		var not *cni.NotReadyError
		switch {
		case errors.As(err, &not):
			missing, reasons = append(missing, c.Name), append(reasons, c.Name+": "+not.Error())
		case err != nil:
			return plan.Change{}, err
		}
	}
	if len(missing) == 0 {
		return plan.Change{Summary: s.nodes()}, nil
	}
	return plan.Change{Needed: true, Summary: "wait for " + strings.Join(missing, ", "),
		Detail: strings.Join(reasons, "\n")}, nil
}

// Follows names the steps after whose changes the plan compares this step again.
func (s *readyStep) Follows() []string {
	return []string{"operator", "API server's address", "installation", "strict affinity", "flannel",
		"antrea", "antrea for Windows", "kube-proxy"}
}

func (s *readyStep) FollowUp() string { return "wait until the pod network works" }

func (s *readyStep) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	err := cni.Await(ctx, s.conditions(), s.work.options.Wait, func(state string) { r.Info("waiting for %s", state) })
	return plan.Outcome{Message: s.nodes()}, err
}

// nodes returns a text about the Windows nodes on which the network works: the name of one node, or
// the number of several nodes.
func (s *readyStep) nodes() string {
	switch n := len(s.work.facts.Windows); n {
	case 0:
		return "the cluster has no Windows node yet"
	case 1:
		return "it works on " + s.work.facts.Windows[0].Name
	default:
		return fmt.Sprintf("it works on %d Windows nodes", n)
	}
}
