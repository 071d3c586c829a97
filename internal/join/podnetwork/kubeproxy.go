package podnetwork

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// kubeProxyForm returns the form of kube-proxy that this installation makes.
func (w *work) kubeProxyForm() cluster.KubeProxyForm {
	switch {
	case w.options.NoKubeProxy:
		return cluster.KubeProxyNone
	case w.wanted.KubeProxy == "":
		return cluster.KubeProxyDaemonSet
	}
	return w.wanted.KubeProxy
}

// checkKubeProxyForm returns a *cni.OtherKubeProxyError if the service would run beside another kube-proxy.
func (w *work) checkKubeProxyForm() error {
	if w.options.NoKubeProxy {
		return nil
	}
	return w.wanted.CheckKubeProxyForm(w.facts, w.options.Force)
}

// otherFormStep removes what another form of kube-proxy has in the cluster, before the chosen form is made.
type otherFormStep struct{ work *work }

func (s *otherFormStep) Name() string { return "kube-proxy's other form" }

func (s *otherFormStep) Plan(ctx context.Context) (plan.Change, error) {
	found, err := s.work.server.OtherKubeProxyForms(ctx, s.work.wanted, s.work.options.Force)
	if err != nil || len(found) == 0 {
		return plan.Change{}, err
	}
	var refs []cni.Ref
	var lines []string
	for _, o := range found {
		refs = append(refs, cni.RefOf(o))
		lines = append(lines, "remove "+cni.RefOf(o).String())
	}
	return plan.Change{Needed: true, Summary: "remove " + listed(refs), Detail: strings.Join(lines, "\n")}, nil
}

func (s *otherFormStep) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	found, err := s.work.server.OtherKubeProxyForms(ctx, s.work.wanted, s.work.options.Force)
	if err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, s.work.server.DeleteAndWait(ctx, found, s.work.options.Wait,
		func(state string) { r.Info("waiting for %s", state) })
}

// kubeProxyStep returns the step that installs kube-proxy for Windows in the chosen form. For the DaemonSet: if another
// installer has installed kube-proxy for Windows, the step leaves it unchanged, unless it cannot run: then the step's
// error names the remedy, and --force takes a DaemonSet of the same name.
func (w *work) kubeProxyStep() plan.Step {
	step := &applyStep{work: w, name: "kube-proxy", present: w.wanted.KubeProxyImage}
	switch w.kubeProxyForm() {
	case cluster.KubeProxyService:
		step.present, step.objects = "a service, which a join makes on each node", fixed(cni.KubeProxyObjects(w.wanted)...)
		return step
	case cluster.KubeProxyNone:
		step.present, step.objects = "none", fixed(cni.KubeProxyObjects(w.wanted)...)
		return step
	}
	step.objects = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		all := cni.KubeProxyObjects(w.wanted)
		own := cni.RefOf(all[len(all)-1])
		for _, other := range w.facts.Networks.KubeProxies {
			same := other.Namespace == own.Namespace && other.Name == own.Name
			if other.Ours && same || w.options.Force && same && len(other.Faults(w.facts.Version)) > 0 {
				continue
			}
			step.present = other.Namespace + "/" + other.Name + ", not installed by swdt"
			if faults := other.Faults(w.facts.Version); len(faults) > 0 {
				return nil, &cni.KubeProxyError{KubeProxy: other, Faults: faults, Network: w.options.Settings.Network}
			}
			return nil, nil
		}
		return all, w.wanted.CheckKubeProxyImage(w.facts)
	}
	return step
}
