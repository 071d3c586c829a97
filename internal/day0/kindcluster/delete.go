package kindcluster

import (
	"context"
	"fmt"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
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
	if err := c.kind.Delete(one.Name, one.Kubeconfig); err != nil {
		return "", failed(err, "delete cluster %s with kind", one.Name)
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
