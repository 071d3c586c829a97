package podnetwork

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// antreaStep returns the step that applies Antrea's manifest for Linux nodes, unless Antrea is there
// already.
func (w *work) antreaStep(present cni.Programs) plan.Step {
	step := w.programsStep("antrea", present)
	manifest := step.objects
	step.objects = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		if present.Exists && !present.Ours {
			return nil, nil
		}
		all, err := manifest(ctx)
		return slices.DeleteFunc(all, cni.OfAntreaWindows), err
	}
	return step
}

// antreaForWindows returns the step that applies Antrea's manifest for Windows nodes, with the settings
// that they need. If Antrea runs on Windows nodes already, the step changes only these settings.
func (w *work) antreaForWindows() plan.Step {
	step := &applyStep{work: w, name: "antrea for Windows", present: "it has a DaemonSet for Windows"}
	step.afterChange = "restart Antrea on Windows: " +
		remedy.KubectlCommand("rollout", "restart", "daemonset", "antrea-agent-windows", "-n", "kube-system")
	step.objects = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		live, err := w.server.Get(ctx, cni.AntreaWindowsConfigObject())
		if err != nil {
			return nil, err
		}
		linux, err := w.antreaConfig(ctx)
		if err != nil {
			return nil, err
		}
		var all []*unstructured.Unstructured
		for _, o := range w.manifest {
			if cni.OfAntreaWindows(o) {
				all = append(all, cni.Labelled(o, cni.Antrea))
			}
		}
		if len(all) == 0 {
			if live == nil { // the agents run as services, or have a ConfigMap with another name
				return nil, nil
			}
			all = append(all, cni.AntreaWindowsConfigAsIs(live))
		}
		for _, o := range all {
			if err := cni.AntreaForWindows(w.wanted, o, live, linux); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return &antreaWindowsStep{step}
}

// antreaWindowsStep is an applyStep that, without a manifest, can report that its DaemonSet is missing.
type antreaWindowsStep struct{ *applyStep }

func (s *antreaWindowsStep) Plan(ctx context.Context) (plan.Change, error) {
	if s.work.noWindows && len(s.work.manifest) == 0 { // only the status has no manifest then
		return plan.Change{Needed: true, Summary: "create DaemonSet kube-system/antrea-agent-windows"}, nil
	}
	return s.applyStep.Plan(ctx)
}

// antreaConfig returns the ConfigMap of Antrea on Linux nodes: that of the cluster, or else that of the
// manifest, or else nil.
func (w *work) antreaConfig(ctx context.Context) (*unstructured.Unstructured, error) {
	object := cni.AntreaConfigObject()
	live, err := w.server.Get(ctx, object)
	if err != nil || live != nil {
		return live, err
	}
	for _, o := range w.manifest {
		if cni.RefOf(o) == cni.RefOf(object) {
			return o, nil
		}
	}
	return nil, nil
}
