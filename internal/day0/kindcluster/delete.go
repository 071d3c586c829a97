package kindcluster

import (
	"context"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// Delete removes a cluster that swdt has made: its containers, its entry in the kubeconfig, swdt's
// record, and kind's network if kind made the network for this cluster and no other cluster uses
// it. The report's result is fleet.Unchanged if there was nothing to remove, else fleet.Changed.
func (c *Clusters) Delete(ctx context.Context, name string, r ui.Reporter) (Report, error) {
	lock, err := c.records.lock(name)
	if err != nil {
		return Report{}, err
	}
	defer lock.Close()
	one, there, err := c.look(name)
	if err != nil {
		return Report{}, err
	}
	report := emptyReport(name, fleet.Unchanged)
	if !there && one.Name == "" {
		return report, nil
	}
	r.Step("deleting cluster %s", name)
	kept, err := c.discard(ctx, one)
	if err != nil {
		return report, err
	}
	if kept != "" {
		r.Warn("%s", kept)
	}
	report.Result = fleet.Changed
	return report, nil
}

// discard removes the containers, the network and the record of a cluster, and restores the kubeconfig. If
// the network stays, kept is the reason.
func (c *Clusters) discard(ctx context.Context, one record) (kept string, err error) {
	defer interrupt.AllowTime(ctx, cleanLimit)()
	if err := c.deleteContainers(ctx, one); err != nil {
		return "", err
	}
	if err := one.Earlier.restore(); err != nil {
		return "", err
	}
	if one.MadeNetwork {
		if kept, err = c.leaveNetwork(ctx, one.Name); err != nil {
			return "", err
		}
	}
	return kept, c.records.remove(one.Name)
}

// removalLook is the pause between two tries to delete containers that are being removed already.
const removalLook = 250 * time.Millisecond

// deleteContainers deletes the containers of a cluster. If the container runtime is removing them already,
// for example because an earlier swdt was killed, kind fails, so deleteContainers tries again.
func (c *Clusters) deleteContainers(ctx context.Context, one record) error {
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	for {
		err := c.kind.Delete(one.Name, one.Kubeconfig)
		if err == nil {
			return nil
		}
		err = failed(err, "delete cluster %s with kind", one.Name)
		if !c.isGoing(ctx, one.Name) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the removal of the containers of cluster %s: %w: %w", one.Name, ctx.Err(), err)
		case <-time.After(removalLook):
		}
	}
}

// isGoing reports whether the container runtime is removing a container of a cluster, or has removed all.
func (c *Clusters) isGoing(ctx context.Context, name string) bool {
	if going, err := c.kind.Removing(ctx, name); err == nil && going {
		return true
	}
	left, err := c.kind.ListNodes(name)
	return err == nil && len(left) == 0
}

// leaveNetwork removes kind's network. If kind has another cluster, the network stays, and is
// removed with that cluster if swdt made it. If the network stays, kept is the reason.
func (c *Clusters) leaveNetwork(ctx context.Context, name string) (kept string, err error) {
	names, err := c.kind.List()
	if err != nil {
		return "", failed(err, "list the clusters of kind")
	}
	for _, other := range names {
		if other == name {
			continue
		}
		return fmt.Sprintf("the network %s stays: cluster %s is in it", network, other), c.inherit(other)
	}
	there, err := c.kind.HasNetwork(ctx)
	if err != nil || !there {
		return "", err
	}
	if err := c.kind.RemoveNetwork(ctx); err != nil {
		return fmt.Sprintf("the network %s stays: %v", network, err), nil
	}
	return "", nil
}

// inherit records that kind's network must be removed together with the cluster of this name. It
// does nothing if swdt did not make that cluster.
func (c *Clusters) inherit(name string) error {
	lock, err := c.records.lock(name)
	if err != nil {
		return err
	}
	defer lock.Close()
	heir, ours, err := c.records.get(name)
	if err != nil || !ours {
		return err
	}
	heir.MadeNetwork = true
	return c.records.put(heir)
}
