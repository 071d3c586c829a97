package podnetwork

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// Options configure an installation.
type Options struct {
	Settings  cni.Settings
	Version   string     // the network's version; "": the default version, or the installed version
	Manifests []Manifest // the manifests to use instead of the version's manifest
	SHA256    string     // the hash of the version's manifest, if swdt does not know that hash
	// CRDSHA256 is the hash of the version's manifest with CustomResourceDefinitions, which only Calico has.
	CRDSHA256 string
	// WindowsSHA256 is the hash of the version's second manifest, which only Antrea has.
	WindowsSHA256 string
	Mirror        string // the URL or folder of a mirror, which replaces all URLs
	Store         artifact.Options

	Force       bool // take the fields that other managers own
	NoKubeProxy bool // the cluster has another proxy for Windows nodes
	// NoWindowsFlannel installs flannel although the cluster has none for Windows: the user runs it there.
	NoWindowsFlannel bool
	NoWait           bool // do not wait until the network works
	DryRun           bool
	// Wait bounds the wait for each condition.
	Wait time.Duration

	// Kubernetes is the version of the API server, on which the default version depends; Install reads it from the cluster.
	Kubernetes string
}

// named reports whether the user has named a version or a manifest.
func (o Options) named() bool { return o.Version != "" || len(o.Manifests) > 0 }

// work is the state that the steps of an installation share.
type work struct {
	options  Options
	server   *cni.Server
	facts    cni.Facts
	wanted   cni.Wanted
	manifest []*unstructured.Unstructured // empty: the network's programs are already installed
	// noWindows reports whether the network's part for Windows nodes is missing, and needs a manifest.
	noWindows bool
}

// Install installs the pod network, or completes the pod network that the cluster has. Objects and
// settings that are already suitable stay as they are.
func Install(ctx context.Context, c *cluster.Cluster, o Options, r ui.Reporter) (Report, error) {
	report := newReport(c, o.Settings.Network)
	w, err := gather(ctx, c, o, r)
	if err != nil {
		return report.ended(err)
	}
	present, err := w.programs(ctx)
	if err == nil {
		err = errors.Join(w.checkFlannel(), w.checkKubeProxyForm())
	}
	if err != nil {
		return report.ended(err)
	}
	report.Problems = append(report.Problems, w.combinations()...)
	finding.Warn(r, report.Problems)
	if need := w.need(present); need.any() {
		if w.manifest, err = w.options.obtain(ctx, need, r); err != nil {
			return report.ended(err)
		}
	}
	report.Steps, err = plan.Run(ctx, w.steps(present), w.planOptions(), r)
	return report.ended(err)
}

// checkFlannel returns a *cni.NoWindowsFlannelError if nothing would run flannel on Windows nodes.
func (w *work) checkFlannel() error {
	if w.options.Settings.Network != cni.Flannel || w.options.NoWindowsFlannel {
		return nil
	}
	return cni.CheckWindowsFlannel(w.facts)
}

// gather reads the facts of the cluster and completes the settings. If the cluster cannot be read,
// it returns no work. If only a setting is missing, it returns the work together with the error.
func gather(ctx context.Context, c *cluster.Cluster, o Options, r ui.Reporter) (*work, error) {
	r.Step("reading the cluster's settings")
	w := &work{options: o, server: cni.NewServer(c)}
	var err error
	if w.facts, err = cni.Gather(ctx, c); err != nil {
		return nil, err
	}
	w.options.Kubernetes = w.facts.Version
	settings, err := w.server.Keep(ctx, o.Settings, w.facts)
	if err != nil {
		return nil, err
	}
	w.wanted, err = settings.Complete(w.facts)
	return w, err
}

func (w *work) planOptions() plan.Options {
	return plan.Options{DryRun: w.options.DryRun, Ordered: true, Elsewhere: "the cluster"}
}

func (w *work) programs(ctx context.Context) (present cni.Programs, err error) {
	if w.options.Settings.Network == cni.Antrea {
		live, err := w.server.Get(ctx, cni.AntreaWindowsObject())
		if err != nil {
			return present, err
		}
		w.noWindows = live == nil
	}
	return w.server.Programs(ctx, w.options.Settings.Network)
}

// need returns the parts of the network for which a manifest is needed.
func (w *work) need(present cni.Programs) parts {
	linux := !present.Exists || w.options.named() && present.Ours
	if linux || w.options.Settings.Network != cni.Antrea {
		return parts{linux: linux, windows: linux}
	}
	if w.options.Version == "" { // both systems have the same version
		w.options.Version = present.Version()
	}
	return parts{windows: w.noWindows}
}

// steps returns the steps of an installation, in order.
func (w *work) steps(present cni.Programs) []plan.Step {
	var steps []plan.Step
	antrea := w.options.Settings.Network == cni.Antrea // it replaces kube-proxy on Windows nodes
	switch w.options.Settings.Network {
	case cni.Flannel:
		steps = []plan.Step{w.flannelStep(present)}
	case cni.Antrea:
		steps = []plan.Step{w.antreaStep(present), w.antreaForWindows()}
	default:
		steps = []plan.Step{w.operatorStep(present), w.endpointStep(), w.installationStep(), &affinityStep{w}}
	}
	if !w.options.NoKubeProxy && !antrea {
		if w.wanted.KubeProxy != "" {
			steps = append(steps, &otherFormStep{w})
		}
		steps = append(steps, w.kubeProxyStep())
	}
	if !w.options.NoWait {
		steps = append(steps, &readyStep{w})
	}
	return steps
}

// programsStep returns the step that applies the manifest, unless the programs are there already.
func (w *work) programsStep(name string, present cni.Programs) *applyStep {
	return &applyStep{work: w, name: name, present: present.String(),
		objects: func(context.Context) ([]*unstructured.Unstructured, error) {
			var all []*unstructured.Unstructured
			for _, o := range w.manifest {
				all = append(all, cni.Labelled(o, w.options.Settings.Network))
			}
			return all, nil
		}}
}

func (w *work) operatorStep(present cni.Programs) plan.Step {
	return w.programsStep("operator", present)
}

func (w *work) endpointStep() plan.Step {
	return &applyStep{work: w, name: "API server's address",
		present: fmt.Sprintf("%s:%d", w.wanted.APIServerHost, w.wanted.APIServerPort),
		objects: fixed(cni.Endpoint(w.wanted))}
}

func (w *work) installationStep() plan.Step {
	return &applyStep{work: w, name: "installation",
		present: "HNS data plane, VXLAN, no BGP, Services' addresses",
		objects: func(ctx context.Context) ([]*unstructured.Unstructured, error) {
			live, err := w.server.Installation(ctx)
			return []*unstructured.Unstructured{cni.Installation(w.wanted, live), cni.CalicoAPIServer()}, err
		}}
}

// flannelStep returns the step that applies flannel's manifest with the settings that Windows
// needs. If flannel is already installed, the step changes only these settings.
func (w *work) flannelStep(present cni.Programs) plan.Step {
	step := w.programsStep("flannel", present)
	step.afterChange = "restart flannel: " +
		remedy.KubectlCommand("rollout", "restart", "daemonset", "kube-flannel-ds", "-n", "kube-flannel")
	manifest := step.objects
	step.objects = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		live, err := w.server.Get(ctx, cni.FlannelConfigObject())
		if err != nil {
			return nil, err
		}
		all, err := manifest(ctx)
		if len(all) == 0 && err == nil {
			all = []*unstructured.Unstructured{cni.FlannelConfigAsIs(live)}
		}
		for _, o := range all {
			if err := cni.FlannelConfig(w.wanted, o, live); err != nil {
				return nil, err
			}
		}
		return all, err
	}
	return step
}
