package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// kubeProxy makes the service kube-proxy in a cluster that runs kube-proxy as a service, and removes the service in a
// cluster that does not any more. Its program is one of the step "kubernetes files".
type kubeProxy struct{ *joining }

const (
	kubeProxyName   = "kube-proxy" // the service
	kubeProxyExe    = v1alpha1.KubernetesFolder + `\kube-proxy.exe`
	kubeProxyConf   = kubernetesConfig + `\kube-proxy.conf`
	kubeProxyLog    = `C:\var\log\kube-proxy\kube-proxy.log`
	kubeProxyHealth = "http://127.0.0.1:10256/healthz" // kube-proxy's default
)

// readKubeProxy reads how the cluster runs kube-proxy. Without a cluster, or the right to read that, the service of the
// machine stays as it is.
func (j *joining) readKubeProxy(ctx context.Context) (err error) {
	if j.options.Cluster == nil {
		j.hasKubeProxy = false
		return nil
	}
	j.choice, err = j.options.Cluster.KubeProxyChoice(ctx)
	if _, forbidden := errors.AsType[*cluster.ForbiddenError](err); forbidden {
		j.options.Reporter.Warn("kube-proxy stays as it is, since swdt may not read how the cluster runs it: %v", err)
		j.hasKubeProxy = false
		return nil
	}
	return err
}

// hasKubeProxy reports whether swdt has made the service on the machine, or has begun to: its source address comes first.
func hasKubeProxy(own preflight.Own) bool {
	return own.SourceVIP || containsFold(own.Services, kubeProxyName) || containsFold(own.Files, kubeProxyConf)
}

// kubeProxyWish is the program kube-proxy.exe, of kubelet's version.
func (j *joining) kubeProxyWish() artifact.Wish {
	return artifact.Wish{Component: artifact.KubeProxy, Version: j.spec.Version,
		Source: j.spec.Kubelet.KubeProxySource, Field: "spec.kubernetes.kubelet.kubeProxySource"}
}

func (s *kubeProxy) Name() string { return stepKubeProxy }

func (s *kubeProxy) Follows() []string {
	return []string{stepKubernetesFiles, stepJoin, stepKubelet, stepNode}
}

func (s *kubeProxy) FollowUp() string { return "" }

func (s *kubeProxy) Plan(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	switch {
	case err != nil:
		return plan.Change{}, err
	case s.choice.Form != cluster.KubeProxyService:
		change, err := s.PlanUndo(ctx)
		if change.Needed {
			change.Summary += fmt.Sprintf(", since the cluster does not run kube-proxy as a service (%s)", s.formText())
		}
		return change, err
	case !r.Joined:
		return plan.Change{Needed: true, Summary: s.waits()}, nil
	}
	parts, err := s.differences(ctx, s.node)
	return plan.Change{Needed: len(parts) > 0, Summary: strings.Join(parts, "; ")}, err
}

func (s *kubeProxy) formText() string {
	if s.choice.Form == "" {
		return "it records no form of it"
	}
	return "its form is " + string(s.choice.Form)
}

func (s *kubeProxy) waits() string {
	return "register the service kube-proxy, once HNS has the network " + s.choice.HNSNetwork
}

// differences returns what the step would change on a machine that has joined.
func (s *kubeProxy) differences(ctx context.Context, n *node.Node) (parts []string, err error) {
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return nil, err
	}
	object, err := s.options.Cluster.Node(ctx, name)
	if err != nil {
		return nil, err
	}
	if object.Labels[cluster.KubeProxyLabel] != string(cluster.KubeProxyService) {
		parts = append(parts, "label the node "+cluster.KubeProxyLabel+"="+string(cluster.KubeProxyService))
	}
	conf, err := s.kubeconfig(ctx)
	var none *cluster.NoKubeProxyTokenError
	if err != nil && !errors.As(err, &none) {
		return nil, err
	}
	is, err := read(ctx, n, kubeProxyConf)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(is, conf) {
		parts = append(parts, "write "+kubeProxyConf)
	}
	wanted, err := s.wanted(ctx, n)
	if err != nil {
		return nil, err
	}
	if wanted == nil {
		return append(parts, s.waits()), nil
	}
	if network, ready, err := s.network(ctx, n); err != nil {
		return nil, err
	} else if !ready && s.reserves(network) {
		parts = append(parts, "reserve a source address in "+network.Subnet)
	}
	r, err := load(ctx, n)
	if err != nil {
		return nil, err
	}
	registered, change, err := s.compareRegistration(ctx, n, r, wanted)
	switch {
	case err != nil:
		return nil, err
	case change.Needed:
		parts = append(parts, change.Summary)
	case len(parts) == 0 && !running(registered):
		parts = append(parts, "start kube-proxy")
	}
	return parts, nil
}

// wanted returns the registration of the service; nil if HNS lacks what the service needs, and the machine has no
// service yet. A registered service keeps its source address while HNS has none.
func (s *kubeProxy) wanted(ctx context.Context, n *node.Node) (*agentv1.ServiceConfig, error) {
	network, ready, err := s.network(ctx, n)
	if err != nil {
		return nil, err
	}
	if !ready {
		is, err := service(ctx, n, kubeProxyName)
		if err != nil || is == nil {
			return nil, err
		}
		network = networkOf(is.GetConfig().GetCommandLine())
	}
	return s.registration(ctx, n, network)
}

func (s *kubeProxy) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	if s.choice.Form != cluster.KubeProxyService {
		return s.Undo(ctx, r)
	}
	name, err := s.nodeName(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	// The label comes first: it keeps pods of kube-proxy off the node.
	label := map[string]string{cluster.KubeProxyLabel: string(cluster.KubeProxyService)}
	if _, err := s.options.Cluster.SetLabels(ctx, name, label); err != nil {
		return plan.Outcome{}, err
	}
	if err := s.awaitNoPods(ctx, name, r); err != nil {
		return plan.Outcome{}, err
	}
	if err := s.awaitNetwork(ctx, s.node, r); err != nil {
		return plan.Outcome{}, err
	}
	conf, err := s.awaitKubeconfig(ctx, r)
	if err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, s.serve(ctx, s.node, conf, r)
}

// serve registers the service with its kubeconfig, starts it, and waits until it is healthy.
func (s *kubeProxy) serve(ctx context.Context, n *node.Node, conf []byte, r ui.Reporter) error {
	wanted, err := s.wanted(ctx, n)
	if err == nil && wanted == nil {
		err = s.noNetwork()
	}
	if err != nil {
		return err
	}
	if err := stop(ctx, n, kubeProxyName); err != nil {
		return err
	}
	if err := s.makeLogFolder(ctx, n, folderOf(kubeProxyLog)); err != nil {
		return err
	}
	if err := putFile(ctx, n, stepKubeProxy, kubeProxyConf, conf); err != nil {
		return err
	}
	if err := s.register(ctx, n, wanted); err != nil {
		return err
	}
	if err := start(ctx, n, kubeProxyName); err != nil {
		return s.failed(ctx, n, stepKubeProxy, kubeProxyName, err)
	}
	if err := awaitHealthy(ctx, n, kubeProxyName, kubeProxyHealth, r); err != nil {
		return s.failed(ctx, n, stepKubeProxy, kubeProxyName, err)
	}
	return update(ctx, n, func(r *record) { r.dropRestart(kubeProxyName) })
}

// awaitNoPods waits until no pod of kube-proxy runs on the node: two kube-proxies on a node remove each other's load
// balancers.
func (s *kubeProxy) awaitNoPods(ctx context.Context, name string, r ui.Reporter) error {
	return waitFor("the pods of kube-proxy to leave the node", s.options.ReadyTimeout, r, func(ctx context.Context) error {
		pods, err := s.options.Cluster.KubeProxyPods(ctx, name)
		if err != nil {
			return wait.Stop(err)
		}
		if len(pods) > 0 {
			return fmt.Errorf("%s is still there", strings.Join(pods, ", "))
		}
		return nil
	}).Wait(ctx)
}

func (s *kubeProxy) awaitNetwork(ctx context.Context, n *node.Node, r ui.Reporter) error {
	return waitFor("the HNS network "+s.choice.HNSNetwork, s.options.ReadyTimeout, r, func(ctx context.Context) error {
		found, ready, err := s.network(ctx, n)
		switch {
		case errors.Is(err, context.DeadlineExceeded): // the time is over: the last state says what was missing
			return context.DeadlineExceeded
		case err != nil:
			return wait.Stop(err)
		case !ready && s.reserves(found):
			return s.reserve(ctx, n, found.Subnet)
		case !ready:
			return s.noNetwork()
		}
		return nil
	}).Wait(ctx)
}

func (s *kubeProxy) noNetwork() error {
	return fmt.Errorf("HNS has no network %s with a source address for kube-proxy; the pod network's program on the node "+
		"makes it: `swdt network status --on-nodes`", s.choice.HNSNetwork)
}

// awaitKubeconfig waits until kube-controller-manager has made the token of kube-proxy's account.
func (s *kubeProxy) awaitKubeconfig(ctx context.Context, r ui.Reporter) (conf []byte, err error) {
	const madeIn = time.Minute
	err = waitFor("the token of kube-proxy's account", madeIn, r, func(ctx context.Context) error {
		conf, err = s.kubeconfig(ctx)
		var none *cluster.NoKubeProxyTokenError
		return wait.StopIf(!errors.As(err, &none), err)
	}).Wait(ctx)
	return conf, err
}

func (s *kubeProxy) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	var parts []string
	for _, change := range []plan.Change{serviceUndoChange(r, kubeProxyName), r.SourceVIP.undoChange(),
		filesChange(r.filesOf(stepKubeProxy))} {
		if change.Needed {
			parts = append(parts, change.Summary)
		}
	}
	return plan.Change{Needed: len(parts) > 0, Summary: strings.Join(parts, ", ")}, nil
}

// Undo removes the service first and then the label, which lets pods of kube-proxy onto the node. If host-local does not
// take the source address back, Undo only warns.
func (s *kubeProxy) Undo(ctx context.Context, reporter ui.Reporter) (plan.Outcome, error) {
	if err := unregister(ctx, s.node, kubeProxyName); err != nil {
		return plan.Outcome{}, err
	}
	err := s.release(ctx, s.node)
	if kept, ok := errors.AsType[*addressKeptError](err); ok && ctx.Err() == nil {
		reporter.Warn("%v", kept)
	} else if err != nil {
		return plan.Outcome{}, err
	}
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if c := s.options.Cluster; c != nil && r.Node != "" {
		is, err := c.Node(ctx, r.Node)
		if err != nil {
			return plan.Outcome{}, err
		}
		if is.Exists {
			if _, err := c.RemoveLabels(ctx, r.Node, []string{cluster.KubeProxyLabel}); err != nil {
				return plan.Outcome{}, err
			}
		}
	}
	return plan.Outcome{}, takeFilesBack(ctx, s.node, stepKubeProxy)
}
