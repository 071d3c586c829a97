package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Cluster is the part of the API server's client that a push uses. *cluster.Cluster
// implements it.
type Cluster interface {
	Node(ctx context.Context, name string) (cluster.Node, error)
	AwaitNode(ctx context.Context, name string, want cluster.Wanted, report func(state string)) (cluster.Node, error)
	cluster.Drainer
}

// readyTimeout bounds the wait for a node to become Ready after kubelet's health check has
// succeeded. kubelet sends its status every 10 s and renews its lease every 10 s.
const readyTimeout = 2 * time.Minute

// swapInCluster swaps the binaries of the node. If Cluster is set and has a Node object for the
// machine, swapInCluster then waits for the Node as awaitReady describes. If Drain is set too, it
// drains the node before the swap.
func (w *work) swapInCluster(ctx context.Context, files *staging) error {
	if w.options.Cluster == nil {
		return w.swap(ctx, files)
	}
	before, err := w.object(ctx)
	if err != nil {
		return err
	}
	if !before.Exists || w.options.Drain == nil {
		return w.swapAndAwait(ctx, files, before)
	}
	w.parts.begin(partDrain)
	options := *w.options.Drain
	options.Usable = func(err error) bool { return ctx.Err() != nil || takenBack(err) }
	machine := MachineOf(ctx, w.node, before.Name)
	swap := func(ctx context.Context) error { return w.swapAndAwait(ctx, files, before) }
	err = cluster.WhileDrained(ctx, w.options.Cluster, machine, options, w.reporter, swap)
	return cluster.RemedyOtherMachine(err, "pass the kubeconfig of this machine's cluster, or omit --drain")
}

// takenBack reports whether err means that all old binaries of the node run again.
func takenBack(err error) bool {
	var back *RolledBackError
	return errors.As(err, &back) && back.Complete()
}

// swapAndAwait swaps the binaries. If the cluster has a Node object for the machine, it then
// waits until that Node is Ready.
func (w *work) swapAndAwait(ctx context.Context, files *staging, before cluster.Node) error {
	if err := w.swap(ctx, files); err != nil || !before.Exists {
		return err
	}
	return w.awaitReady(ctx, files, before)
}

// object returns the node's Node object. Exists of the result is false if the cluster has no such
// Node, or if that Node is a different machine. If Drain is set, object does not check whether the
// Node is a different machine, since the drain checks it.
func (w *work) object(ctx context.Context) (cluster.Node, error) {
	name, err := w.node.ObjectName(ctx, w.doc.Node.Spec.Kubernetes.Join)
	if err != nil {
		return cluster.Node{}, err
	}
	found, err := w.options.Cluster.Node(ctx, name)
	if err != nil {
		return cluster.Node{}, err
	}
	if !found.Exists {
		w.reporter.Info("the cluster has no node %s: not checking whether it is Ready", name)
		return found, nil
	}
	if w.options.Drain != nil {
		return found, nil // the drain refuses a Node that is another machine
	}
	// A Node of another cluster may have the same name. If the machine does not report its system
	// UUID, swdt assumes that the Node belongs to the machine.
	machine := MachineOf(ctx, w.node, name)
	if same, known := cluster.SameMachine(machine.UUID, found.SystemUUID); same || !known {
		return found, nil
	}
	w.reporter.Warn("the cluster's node %s is a different machine from this one: does the kubeconfig belong to "+
		"another cluster? "+
		"Not checking whether the node is Ready", name)
	return cluster.Node{Name: name}, nil
}

// MachineOf returns the machine n with its system UUID. name is the name of its Node object.
func MachineOf(ctx context.Context, n *node.Node, name string) cluster.Machine {
	uuid, err := n.SystemUUID(ctx)
	if err != nil {
		uuid = "" // unknown: callers assume that the Node belongs to the machine
	}
	return cluster.Machine{Node: name, UUID: uuid}
}

// awaitReady is the last check of a push. If the node does not become Ready with the new binaries,
// awaitReady restores the old ones. A node that was not Ready before the push does not have to
// become Ready, since the push may not be the cause: its new kubelet only has to renew the node's
// lease.
func (w *work) awaitReady(ctx context.Context, files *staging, before cluster.Node) error {
	started, err := w.kubeletStarted(ctx)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	want := cluster.Wanted{Registered: true, Ready: before.Ready, LeaseAfter: started}
	if !before.Ready {
		w.reporter.Info("node %s was %s before the push: not checking whether it is Ready now",
			before.Name, before.State())
	}
	w.parts.begin(partReady)
	begun := time.Now()
	_, err = w.options.Cluster.AwaitNode(bounded, before.Name, want, func(state string) {
		w.reporter.Step("waiting for node %s: %s", before.Name, state)
	})
	var vain *cluster.NodeWaitError
	switch {
	case err == nil:
		if want.Ready {
			w.result.ReadySeconds = time.Since(begun).Seconds()
		}
		return nil
	case errors.As(err, &vain) && ctx.Err() == nil:
		return w.takeBack(ctx, files, err)
	}
	return fmt.Errorf("the new binaries run, but swdt cannot determine whether node %s is Ready: %w", before.Name, err)
}

// kubeletStarted returns the time at which kubelet started, by the node's clock;
// zero if kubelet is not running or has no service.
func (w *work) kubeletStarted(ctx context.Context) (time.Time, error) {
	service, err := w.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "kubelet"})
	if errors.Is(err, fault.ErrNoService) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("look at the service kubelet: %w", err)
	}
	if service.GetStatus().GetStarted() == nil {
		return time.Time{}, nil
	}
	return service.GetStatus().GetStarted().AsTime(), nil
}

// takeBack puts back what the transaction replaced, although the transaction itself succeeded: binaries, command
// lines and companions. A component that is new has no previous binary and stays.
func (w *work) takeBack(ctx context.Context, files *staging, why error) error {
	replaced := files.replaced()
	if len(replaced) == 0 {
		return why
	}
	w.reporter.Warn("%v: putting the previous binaries back", why)
	back := newRollback(w.node, w.doc, Options{Holder: w.options.Holder, Locked: w.locked || w.options.Locked}, w.reporter)
	back.companions = reversed(files.companions)
	result, err := back.finish(back.restore(ctx, replaced))
	if err != nil {
		return fmt.Errorf("%w; and the previous binaries could not be put back: %w", why, err)
	}
	for _, is := range result.Components {
		for _, c := range w.components {
			if c.spec.Name == is.Name {
				c.result.Action, c.result.Service = ActionRolledBack, is.Service
			}
		}
	}
	return &RolledBackError{Outcome: &agentv1.SwapOutcome{Result: agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK,
		Message: why.Error()}}
}
