package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/commandline"
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
	object, err := w.object(ctx)
	if err == nil && object != "" && w.options.Drain != nil {
		w.reporter.Step("draining %s", object)
		_, err = w.options.Cluster.Drain(ctx, object, *w.options.Drain, w.reporter)
	}
	if err != nil {
		w.unstage(ctx, err)
		return err
	}
	err = w.swap(ctx)
	if err == nil && object != "" {
		err = w.awaitReady(ctx, object)
	}
	if object != "" && w.options.Drain != nil {
		w.uncordon(ctx, object, err)
	}
	return err
}

// object is the name of the node's Node object, empty where the cluster has none.
func (w *work) object(ctx context.Context) (string, error) {
	name, err := w.objectName(ctx)
	if err != nil {
		return "", err
	}
	found, err := w.options.Cluster.Node(ctx, name)
	if err != nil {
		return "", err
	}
	if !found.Exists {
		w.reporter.Info("the cluster has no node %s: nobody is asked whether it is Ready", name)
		return "", nil
	}
	return name, nil
}

// objectName is what kubelet calls its node: as it was told, else the machine's
// name.
func (w *work) objectName(ctx context.Context) (string, error) {
	if name := w.doc.Node.Spec.Kubernetes.Join.NodeName; name != "" {
		return name, nil
	}
	service, err := w.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "kubelet"})
	if err != nil && !errors.Is(err, host.ErrNoService) {
		return "", fmt.Errorf("look at the service kubelet: %w", err)
	}
	if name := flagOf(service.GetConfig().GetCommandLine(), "--hostname-override"); name != "" {
		return name, nil
	}
	facts, err := w.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return "", fmt.Errorf("ask for the machine's name: %w", err)
	}
	return strings.ToLower(facts.GetHostname()), nil
}

// flagOf is the value of a flag in a command line, as --flag=value or --flag value.
func flagOf(commandLine, flag string) string {
	args := commandline.Split(commandLine)
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
		if arg == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// awaitReady is the last check of a push. A node that is not Ready with the new
// binaries gets the old ones back.
func (w *work) awaitReady(ctx context.Context, object string) error {
	started, err := w.kubeletStarted(ctx)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	want := cluster.Wanted{Registered: true, Ready: true, LeaseAfter: started}
	begun := time.Now()
	_, err = w.options.Cluster.AwaitNode(bounded, object, want, func(state string) {
		w.reporter.Step("waiting for node %s: %s", object, state)
	})
	var vain *cluster.NodeWaitError
	switch {
	case err == nil:
		w.result.ReadySeconds = time.Since(begun).Seconds()
		return nil
	case errors.As(err, &vain) && ctx.Err() == nil:
		return w.takeBack(ctx, err)
	}
	return fmt.Errorf("the new binaries run, but nobody can tell whether node %s is Ready: %w", object, err)
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
