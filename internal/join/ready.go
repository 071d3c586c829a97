package join

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

// ready waits until the cluster reports the node as Ready, and gives the Node the labels
// and taints that kubelet does not set.
type ready struct{ *joining }

func (s *ready) Name() string { return stepNode }
func (s *ready) Follows() []string {
	return []string{stepJoin, stepKubelet, stepKubernetesFiles, stepContainerdFiles}
}
func (s *ready) FollowUp() string { return "wait until the node is Ready" }

func (s *ready) Plan(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil || s.options.Cluster == nil {
		return plan.Change{}, err
	}
	if !r.Joined { // before the join there is nothing to wait for; FollowUp names this step in the plan
		return plan.Change{}, nil
	}
	name, err := s.nodeName(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	is, err := s.options.Cluster.Node(ctx, name)
	if err != nil {
		return plan.Change{}, err
	}
	wanted, err := s.wanted()
	if err != nil {
		return plan.Change{}, err
	}
	var parts []string
	for what, names := range map[string][]string{ // in any order: sorted below
		"label the node ":        missingLabels(is, wanted),
		"taint the node ":        missingTaints(is, wanted),
		"remove from the node: ": s.staleOnNode(r, is),
	} {
		if len(names) > 0 {
			parts = append(parts, what+strings.Join(names, ", "))
		}
	}
	slices.Sort(parts)
	if !s.well(is) {
		parts = append(parts, s.waitFor(is))
	}
	if is.CordonedByUs {
		parts = append(parts, "uncordon the node")
	}
	if len(parts) == 0 && !s.restarted.IsZero() && s.hasAddress() {
		parts = append(parts, "wait until kubelet answers the API server")
	}
	if len(parts) == 0 {
		return plan.Change{Summary: readyText(is)}, nil
	}
	return plan.Change{Needed: true, Summary: strings.Join(parts, "; ")}, nil
}

func readyText(is cluster.Node) string {
	return fmt.Sprintf("%s is Ready: kubelet %s, %s, %s %s",
		is.Name, is.KubeletVersion, is.Runtime, is.OSImage, is.KernelVersion)
}

// well reports whether the node is Ready with CPU and memory for pods, and whether its kubelet has
// renewed the node's lease since kubelet's last restart.
func (s *ready) well(is cluster.Node) bool {
	return is.Exists && is.Ready && is.Allocatable.MilliCPU > 0 && is.Allocatable.MemoryBytes > 0 &&
		(s.leaseAfter().IsZero() || is.LeaseRenewed.After(s.leaseAfter())) &&
		s.rightAddress(is)
}

// waitFor returns a text about the state that the step waits for. A node may still count as Ready
// because of a report from before kubelet's last restart.
func (s *ready) waitFor(is cluster.Node) string {
	if is.Ready && !s.rightAddress(is) {
		return strings.TrimSuffix("wait until the node reports its address "+s.source, " ")
	}
	if is.Ready {
		return "wait for the restarted kubelet to report"
	}
	return "wait until the node is Ready: it is " + is.State()
}

func (s *ready) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	name, err := s.nodeName(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if _, err := s.await(ctx, name, cluster.Wanted{Registered: true}, r); err != nil {
		return plan.Outcome{}, s.failed(ctx, s.node, stepNode, kubeletName, err)
	}
	decorated, err := s.decorate(ctx, s.node, name)
	if err != nil {
		return plan.Outcome{}, err
	}
	wanted, err := s.wanted()
	if err != nil {
		return plan.Outcome{}, err
	}
	is, err := s.await(ctx, name, wanted, r)
	if err != nil {
		return plan.Outcome{}, s.failed(ctx, s.node, stepNode, kubeletName, err)
	}
	if err := s.awaitPort(ctx, is, r); err != nil {
		return plan.Outcome{}, err
	}
	uncordoned, err := s.options.Cluster.Uncordon(ctx, name)
	if err != nil || decorated || uncordoned {
		return plan.Outcome{}, err
	}
	return plan.Outcome{Waited: true, Message: readyText(is)}, nil
}

// hasAddress reports whether kubelet was given an address.
func (s *ready) hasAddress() bool {
	return s.source != "" || s.spec.Join.NodeIP != "" || s.spec.Kubelet.ExtraArgs[nodeIPFlag] != ""
}

// rightAddress reports whether the Node has the address that kubelet was given.
func (s *ready) rightAddress(is cluster.Node) bool {
	return !s.hasAddress() || is.InternalIP() != "" && (s.source == "" || is.HasInternalIPs(s.source))
}

// awaitPort waits until kubelet answers the API server, and warns if it does not: `kubectl logs` and `exec` need it,
// and pods run without it.
func (s *ready) awaitPort(ctx context.Context, is cluster.Node, r ui.Reporter) error {
	if !s.hasAddress() {
		return nil
	}
	const answersIn = 20 * time.Second
	waiting, cancel := context.WithTimeout(ctx, answersIn)
	defer cancel()
	err := s.options.Cluster.AwaitKubelet(waiting, is.Name)
	var forbidden *cluster.ForbiddenError
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &forbidden):
		r.Debug("whether the API server reaches kubelet is unknown: %v", err)
		return nil
	}
	r.Warn("`kubectl logs` and `exec` do not work on %s, since the API server gets no answer from kubelet at %s:10250: %v; "+
		"let the firewalls between the control plane and the node pass TCP 10250, or set spec.kubernetes.join.nodeIP to an "+
		"address that the control plane reaches", is.Name, is.InternalIP(), err)
	return nil
}

// decorate gives the Node its labels and taints. It removes the labels and taints that swdt
// has set but that the node file no longer has. It reports whether it changed the Node.
func (s *ready) decorate(ctx context.Context, n *node.Node, name string) (changed bool, err error) {
	wanted, err := s.wanted()
	if err != nil {
		return false, err
	}
	r, err := load(ctx, n)
	if err != nil {
		return false, err
	}
	c := s.options.Cluster
	note := func(did bool, err error) error {
		changed = changed || did
		return err
	}
	if stale := s.staleLabels(r); len(stale) > 0 {
		if err := note(c.RemoveLabels(ctx, name, stale)); err != nil {
			return changed, err
		}
	}
	if stale := s.staleTaints(r); len(stale) > 0 {
		if err := note(c.RemoveTaints(ctx, name, stale)); err != nil {
			return changed, err
		}
	}
	err = update(ctx, n, func(r *record) {
		r.Labels = slices.Sorted(maps.Keys(wanted.Labels))
		r.Taints = s.spec.Kubelet.RegisterWithTaints
	})
	if err != nil {
		return changed, err
	}
	if len(wanted.Labels) > 0 {
		if err := note(c.SetLabels(ctx, name, wanted.Labels)); err != nil {
			return changed, err
		}
	}
	if len(wanted.Taints) > 0 {
		err = note(c.SetTaints(ctx, name, wanted.Taints))
	}
	return changed, err
}

// staleLabels returns the keys of the labels that swdt has set but that the node file no
// longer has.
func (s *ready) staleLabels(r record) []string {
	return slices.DeleteFunc(slices.Clone(r.Labels), func(key string) bool {
		_, wanted := s.spec.Kubelet.NodeLabels[key]
		return wanted
	})
}

// staleTaints returns the taints that swdt has set but that the node file no longer has. Two
// taints that differ only in the value count as the same taint.
func (s *ready) staleTaints(r record) []corev1.Taint {
	var stale []corev1.Taint
	for _, text := range r.Taints {
		taint, err := parseTaint(text)
		same := func(wanted string) bool {
			t, err := parseTaint(wanted)
			return err == nil && t.MatchTaint(&taint)
		}
		if err == nil && !slices.ContainsFunc(s.spec.Kubelet.RegisterWithTaints, same) {
			stale = append(stale, taint)
		}
	}
	return stale
}

// staleOnNode returns those of staleLabels and staleTaints that the Node still has. Each entry is a
// text for messages, such as "label KEY".
func (s *ready) staleOnNode(r record, is cluster.Node) []string {
	var names []string
	for _, key := range s.staleLabels(r) {
		if _, has := is.Labels[key]; has {
			names = append(names, "label "+key)
		}
	}
	for _, taint := range s.staleTaints(r) {
		if slices.ContainsFunc(is.Taints, func(has corev1.Taint) bool { return has.MatchTaint(&taint) }) {
			names = append(names, "taint "+taint.ToString())
		}
	}
	return names
}

// await waits until the node has the wanted state, and reports what it waits for. It returns the
// node in that state.
func (s *ready) await(ctx context.Context, name string, wanted cluster.Wanted, r ui.Reporter) (cluster.Node, error) {
	waiting, cancel := context.WithTimeout(ctx, s.options.ReadyTimeout)
	defer cancel()
	return s.options.Cluster.AwaitNode(waiting, name, wanted, func(state string) {
		r.Step("waiting for the node: %s", state)
	})
}

// wanted returns the state that the node file requires of the Node.
func (s *ready) wanted() (cluster.Wanted, error) {
	wanted := cluster.Wanted{
		Registered: true, Ready: true, Allocatable: true, Addresses: s.hasAddress(), InternalIP: s.source,
		LeaseAfter: s.leaseAfter(), Labels: s.spec.Kubelet.NodeLabels,
	}
	for _, text := range s.spec.Kubelet.RegisterWithTaints {
		taint, err := parseTaint(text)
		if err != nil {
			return wanted, err
		}
		wanted.Taints = append(wanted.Taints, taint)
	}
	return wanted, nil
}

// leaseAfter returns the time after which a lease must have been renewed for the node to
// count as Ready: a Node that was Ready before kubelet was restarted stays Ready for a while.
// For a new Node, leaseAfter returns the zero time: no earlier report can exist, and the
// first lease takes 10 seconds.
func (s *ready) leaseAfter() time.Time {
	if s.newNode {
		return time.Time{}
	}
	return s.restarted
}

// parseTaint parses key=value:Effect or key:Effect.
func parseTaint(text string) (corev1.Taint, error) {
	pair, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(pair, "=")
	if !ok || key == "" {
		return corev1.Taint{}, fmt.Errorf("spec.kubernetes.kubelet.registerWithTaints: %.80q is not a taint; "+
			"write it such as os=windows:NoSchedule", text)
	}
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, nil
}

func missingLabels(is cluster.Node, wanted cluster.Wanted) []string {
	var missing []string
	for _, key := range slices.Sorted(maps.Keys(wanted.Labels)) {
		if has, ok := is.Labels[key]; !ok || has != wanted.Labels[key] {
			missing = append(missing, key+"="+wanted.Labels[key])
		}
	}
	return missing
}

func missingTaints(is cluster.Node, wanted cluster.Wanted) []string {
	var missing []string
	for _, taint := range wanted.Taints {
		same := func(has corev1.Taint) bool { return has.MatchTaint(&taint) && has.Value == taint.Value }
		if !slices.ContainsFunc(is.Taints, same) {
			missing = append(missing, taint.ToString())
		}
	}
	return missing
}

// PlanUndo plans to drain the node, so that its pods move elsewhere first.
func (s *ready) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil || s.reset.Drain == nil || r.Node == "" || !r.Joined {
		return plan.Change{}, err
	}
	is, err := s.options.Cluster.Node(ctx, r.Node)
	var silent *cluster.UnreachableError
	switch {
	case errors.As(err, &silent):
		return plan.Change{}, fmt.Errorf("%w; if the cluster is gone for good: `swdt reset --no-drain`", err)
	case err != nil || !is.Exists:
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "drain " + r.Node}, nil
}

// Undo drains the node.
func (s *ready) Undo(ctx context.Context, reporter ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	done, err := s.options.Cluster.Drain(ctx, push.MachineOf(ctx, s.node, r.Node), *s.reset.Drain, reporter)
	if done.Cordoned {
		s.drained = r.Node
	}
	err = cluster.RemedyOtherMachine(err, "pass the kubeconfig of this machine's cluster, or `swdt reset --no-drain`")
	return plan.Outcome{Message: evicted(len(done.Evicted))}, err
}

func evicted(pods int) string {
	switch pods {
	case 0:
		return "no pod had to leave"
	case 1:
		return "one pod has left"
	}
	return fmt.Sprintf("%d pods have left", pods)
}
