package podnetwork

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// RemoveOptions configure a removal.
type RemoveOptions struct {
	Network cni.Network
	CRDs    bool // also remove the kinds (CustomResourceDefinitions), with all objects of these kinds
	DryRun  bool
	Wait    time.Duration // bounds the wait for each object to be gone
}

// Remove removes the objects that an installation has created. If Calico's Installation was made by
// another installer, Remove turns Windows off in that Installation. It leaves all other objects as
// they are.
func Remove(ctx context.Context, c *cluster.Cluster, o RemoveOptions, r ui.Reporter) (Report, error) {
	report := newReport(c, o.Network)
	s := &removal{server: cni.NewServer(c), options: o}
	r.Step("looking for objects of swdt")
	made, err := s.server.Made(ctx, o.Network)
	if err != nil {
		return report.ended(err)
	}
	steps := []plan.Step{
		&windowsStep{s},
		&removeStep{removal: s, name: "configuration", all: made.Configuration},
		&removeStep{removal: s, name: "objects", all: made.Objects},
		&removeStep{removal: s, name: "namespaces", all: made.Namespaces, keep: s.othersIn},
		&removeStep{removal: s, name: "kinds", all: made.Kinds, keep: s.usersOf},
	}
	options := plan.Options{DryRun: o.DryRun, Ordered: true, Elsewhere: "the cluster"}
	report.Steps, err = plan.Run(ctx, steps, options, r)
	return report.ended(err)
}

type removal struct {
	server  *cni.Server
	options RemoveOptions
}

// othersIn returns the reason why the namespace must stay; "" if it can be removed.
func (s *removal) othersIn(ctx context.Context, namespace *unstructured.Unstructured) (string, error) {
	others, err := s.server.Others(ctx, namespace.GetName())
	// Others does not return objects of swdt, since these are already gone or about to be removed.
	if err != nil || len(others) == 0 {
		return "", err
	}
	return "it has " + strings.Join(others[:min(maxListed, len(others))], ", "), nil
}

// usersOf returns the reason why the CustomResourceDefinition must stay; "" if it can be removed.
func (s *removal) usersOf(ctx context.Context, crd *unstructured.Unstructured) (string, error) {
	if s.options.CRDs {
		return "", nil
	}
	n, err := s.server.Used(ctx, crd)
	if err != nil || n == 0 {
		return "", err
	}
	return fmt.Sprintf("it has %d objects", n), nil
}

// removeStep deletes objects.
type removeStep struct {
	*removal
	name string
	all  []*unstructured.Unstructured                                              // the objects of swdt
	keep func(context.Context, *unstructured.Unstructured) (why string, err error) // may be nil
}

func (s *removeStep) Name() string { return s.name }

// selected returns the objects to delete, and a text for each object that stays.
func (s *removeStep) selected(ctx context.Context) (all []*unstructured.Unstructured, kept []string, err error) {
	for _, o := range s.all {
		why := ""
		if s.keep != nil {
			if why, err = s.keep(ctx, o); err != nil {
				return nil, nil, err
			}
		}
		if why != "" {
			kept = append(kept, fmt.Sprintf("%s stays: %s", cni.RefOf(o), why))
			continue
		}
		live, err := s.server.Get(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		if live != nil && live.GetUID() == o.GetUID() {
			all = append(all, o)
		}
	}
	return all, kept, nil
}

func (s *removeStep) Plan(ctx context.Context) (plan.Change, error) {
	all, kept, err := s.selected(ctx)
	if err != nil {
		return plan.Change{}, err
	}
	if len(all) == 0 {
		return plan.Change{Summary: keptText(kept)}, nil
	}
	var refs []cni.Ref
	lines := kept
	for _, o := range all {
		refs = append(refs, cni.RefOf(o))
		lines = append(lines, "remove "+cni.RefOf(o).String())
	}
	return plan.Change{Needed: true, Summary: "remove " + listed(refs), Detail: strings.Join(lines, "\n")}, nil
}

// Follows makes the plan compare this step again after the steps that remove other objects: those
// objects may be the reason why a namespace or a kind has to stay.
func (s *removeStep) Follows() []string {
	if s.keep == nil {
		return nil
	}
	return []string{"configuration", "objects"}
}

func (s *removeStep) FollowUp() string { return "" }

func keptText(kept []string) string {
	if more := len(kept) - 1; more > 0 {
		return fmt.Sprintf("%s; %d more stay", kept[0], more)
	}
	return strings.Join(kept, "")
}

func (s *removeStep) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	all, kept, err := s.selected(ctx)
	if err != nil {
		return plan.Outcome{}, err
	}
	err = s.server.DeleteAndWait(ctx, all, s.options.Wait, func(state string) { r.Info("waiting for %s", state) })
	return plan.Outcome{Message: keptText(kept)}, err
}

// windowsStep turns Calico for Windows off in an Installation that another installer made.
type windowsStep struct{ *removal }

func (s *windowsStep) Name() string { return "settings" }

func (s *windowsStep) Plan(ctx context.Context) (plan.Change, error) {
	needed, err := s.server.TurnWindowsOff(ctx, true)
	if err != nil || !needed {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "turn Windows off in Installation default; its other settings stay"}, nil
}

func (s *windowsStep) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	_, err := s.server.TurnWindowsOff(ctx, false)
	return plan.Outcome{}, err
}
