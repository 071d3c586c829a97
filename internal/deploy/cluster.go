package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/host"
)

// Cluster is what a push asks of the API server whose node this is;
// *cluster.Cluster answers it.
type Cluster interface {
	Node(ctx context.Context, name string) (cluster.Node, error)
	AwaitNode(ctx context.Context, name string, want cluster.Wanted, report func(state string)) (cluster.Node, error)
	Drain(ctx context.Context, name string, o cluster.DrainOptions, r cluster.Reporter) (cluster.Drained, error)
	Uncordon(ctx context.Context, name string) (bool, error)
}

// readyTimeout bounds the wait for a node to be Ready after its kubelet has
// answered for itself: a status update and a lease, each every 10 s.
const readyTimeout = 2 * time.Minute

// swapInCluster is the swap of a node that serves a cluster: its pods leave
// before, where that is wanted, and it must be Ready after.
func (w *work) swapInCluster(ctx context.Context) error {
	if w.options.Cluster == nil {
		return w.swap(ctx)
	}
	before, err := w.object(ctx)
	if err == nil && before.Exists && w.options.Drain != nil {
		w.reporter.Step("draining %s", before.Name)
		_, err = w.options.Cluster.Drain(ctx, before.Name, *w.options.Drain, w.reporter)
	}
	if err != nil {
		w.unstage(ctx, err)
		return err
	}
	err = w.swap(ctx)
	if err == nil && before.Exists {
		err = w.awaitReady(ctx, before)
	}
	if before.Exists && w.options.Drain != nil {
		w.uncordon(ctx, before.Name, err)
	}
	return err
}

// object is the node's Node object; one that does not exist where the cluster
// has none.
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
		w.reporter.Info("the cluster has no node %s: nobody is asked whether it is Ready", name)
		return found, nil
	}
	// One of another cluster may have the same name. A machine that does not tell
	// who it is, is taken for the node.
	is, err := w.node.SystemUUID(ctx)
	if err != nil || is == "" || found.SystemUUID == "" || strings.EqualFold(is, found.SystemUUID) {
		return found, nil
	}
	if w.options.Drain != nil {
		return cluster.Node{}, &OtherMachineError{Node: name, UUID: found.SystemUUID, Machine: is}
	}
	w.reporter.Warn("the cluster's node %s is another machine than this: is it the kubeconfig of another cluster? Nobody is asked whether the node is Ready", name)
	return cluster.Node{Name: name}, nil
}

// OtherMachineError is a Node of the machine's name that is another machine.
type OtherMachineError struct{ Node, UUID, Machine string }

func (e *OtherMachineError) Error() string {
	return fmt.Sprintf("the cluster's node %s is another machine than this (system UUID %s, not %s), and is not drained: name the kubeconfig of this machine's cluster, or go without --drain",
		e.Node, e.UUID, e.Machine)
}

// awaitReady is the last check of a push. A node that is not Ready with the new
// binaries gets the old ones back. Where it was not before either, that is not
// held against them: their kubelet must only be heard of.
func (w *work) awaitReady(ctx context.Context, before cluster.Node) error {
	started, err := w.kubeletStarted(ctx)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	want := cluster.Wanted{Registered: true, Ready: before.Ready, LeaseAfter: started}
	if !before.Ready {
		w.reporter.Info("node %s was %s before the push: whether it is Ready now is not asked", before.Name, before.State())
	}
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
		return w.takeBack(ctx, err)
	}
	return fmt.Errorf("the new binaries run, but nobody can tell whether node %s is Ready: %w", before.Name, err)
}

// kubeletStarted is when kubelet began to run, by the node's clock; zero where
// this push did not touch it.
func (w *work) kubeletStarted(ctx context.Context) (time.Time, error) {
	service, err := w.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "kubelet"})
	if errors.Is(err, host.ErrNoService) {
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

// takeBack puts the previous binaries back though the transaction itself went
// well. What was new, not replaced, has no previous one and stays.
func (w *work) takeBack(ctx context.Context, why error) error {
	var names []string
	for _, c := range w.components {
		if c.change == changeBinary {
			names = append(names, c.spec.Name)
		}
	}
	if len(names) == 0 {
		return why
	}
	w.reporter.Warn("%v: putting the previous binaries back", why)
	options := Options{Holder: w.options.Holder, Locked: w.locked || w.options.Locked}
	result, err := Rollback(ctx, w.node, w.doc, names, options, w.reporter)
	if err != nil {
		return fmt.Errorf("%w; and the previous binaries could not be put back: %w", why, err)
	}
	for _, back := range result.Components {
		for _, c := range w.components {
			if c.spec.Name == back.Name {
				c.result.Action, c.result.Service = ActionRolledBack, back.Service
			}
		}
	}
	return &RolledBackError{Outcome: &agentv1.SwapOutcome{Result: outcomeRolledBack, Message: why.Error()}}
}

// uncordon lets pods come back where the node works, with the new binaries or
// the old. It is also done after Ctrl-C, within the time that leaves.
func (w *work) uncordon(ctx context.Context, object string, failed error) {
	var back *RolledBackError
	if failed != nil && !(errors.As(failed, &back) && back.Complete()) && ctx.Err() == nil {
		w.reporter.Warn("node %s stays cordoned, since it may not work: kubectl uncordon %s when it does", object, object)
		return
	}
	limit := 15 * time.Second
	if ctx.Err() != nil {
		limit = farewell
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if _, err := w.options.Cluster.Uncordon(ctx, object); err != nil {
		w.reporter.Warn("node %s stays cordoned: %v; kubectl uncordon %s", object, err, object)
	}
}
