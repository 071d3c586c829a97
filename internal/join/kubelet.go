package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// kubeletService registers kubelet as a native service, since kubeadm requires that service.
// It does not start the service: before the join, kubelet has nothing to do.
type kubeletService struct{ *joining }

func (s *kubeletService) Name() string { return stepKubeletService }

// wantedKubelet returns the wanted registration of the service kubelet, with the flags
// that kubeadm left for it.
func (j *joining) wantedKubelet(ctx context.Context, n *node.Node) (*agentv1.ServiceConfig, error) {
	name, err := j.nodeName(ctx, n)
	if err != nil {
		return nil, err
	}
	content, err := smallfile.Read(ctx, n, kubeletargs.FlagsFile)
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return nil, err
	}
	flags, err := kubeletargs.ParseKubeadmFlags(content)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	for key, value := range j.spec.Kubelet.NodeLabels {
		if cluster.KubeletMaySet(key) { // the step ready sets the other labels in the cluster
			labels[key] = value
		}
	}
	address, err := j.address(ctx, n)
	if err != nil {
		return nil, err
	}
	commandLine, err := kubeletargs.CommandLine(kubeletargs.Wish{
		Version: j.spec.Version, NodeName: name, NodeIP: j.nodeIP(), Address: address, LogRunner: true,
		LogFileSize: j.spec.Kubelet.LogFileSize, LogFileAge: j.logFileAge(),
		KubeadmFlags: flags, ExtraArgs: j.spec.Kubelet.ExtraArgs, NodeLabels: labels,
		RegisterWithTaints: j.spec.Kubelet.RegisterWithTaints,
		ConfigDropIn:       len(j.spec.Kubelet.ConfigPatch) > 0,
		PauseImage:         j.spec.Containerd.PauseImage,
	})
	if err != nil {
		return nil, err
	}
	return &agentv1.ServiceConfig{
		Name: kubeletName, DisplayName: "kubelet", Description: "Kubernetes node agent",
		CommandLine: commandLine, StartType: agentv1.StartType_START_TYPE_AUTO, Dependencies: []string{containerdName},
		Recovery: kubeletRecovery(),
	}, nil
}

// logFileAge returns how long kubelet's older log files are kept; 0: for ever.
func (j *joining) logFileAge() time.Duration {
	if age := j.spec.Kubelet.LogFileAge; age != nil {
		return age.Duration
	}
	return 0
}

// nodeIP returns the address that kubelet reports for the node. For an image it returns "", since
// each machine of the image has another address.
func (j *joining) nodeIP() string {
	if j.image {
		return ""
	}
	return j.spec.Join.NodeIP
}

func (s *kubeletService) Plan(ctx context.Context) (plan.Change, error) {
	r, err := s.sameName(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	wanted, err := s.wantedKubelet(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	is, change, err := s.compareRegistration(ctx, s.node, r, wanted)
	if is == nil && s.source != "" {
		change.Summary += ", for a node at " + s.source
	}
	return change, err
}

// sameName returns the record. It returns an error if the machine has joined under another name than the name in the node
// file.
func (s *kubeletService) sameName(ctx context.Context, n *node.Node) (record, error) {
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return record{}, err
	}
	r, err := load(ctx, n)
	if err != nil {
		return record{}, err
	}
	if (r.Joined || r.Joining) && r.Node != name {
		return record{}, fmt.Errorf("the machine has joined as %s and the node file names it %s: a node keeps its name; run "+
			"`swdt reset` first", r.Node, name)
	}
	return r, nil
}

func (s *kubeletService) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	wanted, err := s.wantedKubelet(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, s.registerKubelet(ctx, wanted)
}

func (s *kubeletService) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	return serviceUndoChange(r, kubeletName), err
}

func (s *kubeletService) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, unregister(ctx, s.node, kubeletName)
}

// kubelet starts or restarts the service kubelet, so that the service runs with its present
// configuration. It also starts the services that were stopped for that restart. This step has no
// undo, since leaving the cluster stops the service.
type kubelet struct{ *joining }

func (s *kubelet) Name() string { return stepKubelet }
func (s *kubelet) Follows() []string {
	return []string{stepContainerdFiles, stepContainerdService, stepKubernetesFiles, stepKubeletConfig,
		stepKubeletService, stepJoin}
}
func (s *kubelet) FollowUp() string { return "restart kubelet if its configuration changed" }

func (s *kubelet) Plan(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	if !r.Joined { // the join starts kubelet, and this step comes after the join
		return plan.Change{}, nil
	}
	is, err := service(ctx, s.node, kubeletName)
	if err != nil || is == nil {
		return plan.Change{}, err
	}
	wanted, err := s.wantedKubelet(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	_, change, err := s.compareRegistration(ctx, s.node, r, wanted)
	if err != nil {
		return plan.Change{}, err
	}
	switch {
	case change.Needed:
		change.Summary += ", and restart it"
	case len(r.Restart) > 0:
		change = plan.Change{Needed: true, Summary: "restart " + strings.Join(r.Restart, ", ")}
	case !running(is):
		change = plan.Change{Needed: true, Summary: "start kubelet"}
	default:
		return s.planRegistration(ctx, s.node)
	}
	return change, nil
}

// planRegistration plans a restart of kubelet if its Node was deleted: a kubelet registers only
// when it starts. If this run has started kubelet, kubelet is about to register anyway.
func (s *kubelet) planRegistration(ctx context.Context, n *node.Node) (plan.Change, error) {
	gone, err := s.unregistered(ctx, n)
	if err != nil || !gone {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "restart kubelet, whose Node was deleted"}, nil
}

func (s *kubelet) unregistered(ctx context.Context, n *node.Node) (bool, error) {
	if s.options.Cluster == nil || !s.restarted.IsZero() {
		return false, nil
	}
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return false, err
	}
	is, err := s.options.Cluster.Node(ctx, name)
	return !is.Exists, err
}

func (s *kubelet) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	wanted, err := s.wantedKubelet(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	gone, err := s.unregistered(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if s.restarted, err = s.clock(ctx, s.node); err != nil {
		return plan.Outcome{}, err
	}
	if err := s.registerKubelet(ctx, wanted); err != nil {
		return plan.Outcome{}, err
	}
	if gone {
		if err := update(ctx, s.node, func(r *record) { r.addRestart(kubeletName) }); err != nil {
			return plan.Outcome{}, err
		}
	}
	if err := s.run(ctx, s.node, r); err != nil {
		return plan.Outcome{}, s.failed(ctx, s.node, stepKubelet, kubeletName, err)
	}
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.Restart = nil })
}

func (s *kubelet) run(ctx context.Context, n *node.Node, r ui.Reporter) error {
	rec, err := load(ctx, n)
	if err != nil {
		return err
	}
	if rec.pending(kubeletName) {
		r.Step("restarting kubelet")
		err = restart(ctx, n, kubeletName)
	} else {
		err = start(ctx, n, kubeletName)
	}
	if err != nil {
		return err
	}
	if rec, err = load(ctx, n); err != nil {
		return err
	}
	for _, name := range rec.Restart { // the services that were stopped with containerd or kubelet
		if strings.EqualFold(name, kubeletName) {
			continue
		}
		if err := start(ctx, n, name); err != nil && !errors.Is(err, fault.ErrNoService) {
			return err
		}
	}
	return s.awaitHealthy(ctx, n, r)
}

// awaitHealthy waits until kubelet reports that it is healthy. It returns at once if the node file
// has turned kubelet's health endpoint off.
func (s *kubelet) awaitHealthy(ctx context.Context, n *node.Node, r ui.Reporter) error {
	url := s.healthz()
	if url == "" {
		return nil
	}
	return awaitHealthy(ctx, n, kubeletName, url, r)
}

// awaitHealthy waits until a service's health endpoint at url reports that the service is healthy.
func awaitHealthy(ctx context.Context, n *node.Node, name, url string, r ui.Reporter) error {
	const healthyIn = 2 * time.Minute
	what := name + " to be healthy"
	return waitFor(what, healthyIn, r, func(ctx context.Context) error {
		reply, err := n.Network.HTTPGet(ctx, &agentv1.HTTPGetRequest{Url: url})
		switch {
		case lost(err):
			return wait.Stop(fmt.Errorf("wait for %s: %w", what, err))
		case err != nil:
			return err
		case reply.GetStatus() != 200:
			return fmt.Errorf("%s answers %d", url, reply.GetStatus())
		}
		return nil
	}).Wait(ctx)
}

// healthz returns the address of kubelet's health endpoint; "" if the node file has
// turned it off.
func (s *kubelet) healthz() string {
	port := cmp.Or(s.spec.Kubelet.Setting("healthz-port", "healthzPort"), "10248")
	if port == "0" {
		return ""
	}
	return "http://127.0.0.1:" + port + "/healthz"
}

// kubeletMinor returns the minor version of the wanted kubelet: 36 for 1.36.3.
func kubeletMinor(k v1alpha1.Kubernetes) (int, error) {
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(k.Version, "v"), "%d.%d", &major, &minor); err != nil || major != 1 {
		return 0, fmt.Errorf("spec.kubernetes.version: %.40q is not a version of Kubernetes", k.Version)
	}
	return minor, nil
}
