package up

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// kindPlane is a control plane in a container of kind.
type kindPlane struct{ *work }

func (w kindPlane) ensure(ctx context.Context, r ui.Reporter) (done, error) {
	if w.DryRun {
		planned, err := w.Clusters.Plan(ctx, w.cluster)
		if planned.Result == fleet.Unchanged {
			return done{message: "it exists"}, err
		}
		return done{true, strings.Join(planned.Changes, "; ")}, err
	}
	if err := w.recordCluster(); err != nil {
		return done{}, err
	}
	opened, err := w.Clusters.Ensure(ctx, w.cluster, kindcluster.Options{Kubeconfig: w.Kubeconfig}, r)
	if err != nil {
		return done{}, err
	}
	result := done{opened.Result == fleet.Changed, "Kubernetes " + opened.Version + " at " + opened.Server}
	found, err := w.planeOf(opened)
	w.keep(found, err)
	return result, err
}

// recordCluster records that Up makes the cluster, unless kind has it already.
func (w kindPlane) recordCluster() error {
	if w.notes.now().Cluster {
		return nil
	}
	there, err := w.Clusters.Made(w.name())
	if err != nil || there {
		return err
	}
	return w.notes.change(func(made *record) { made.Cluster = true })
}

// access returns the control plane of the cluster.
func (w kindPlane) access(ctx context.Context) (controlPlane, error) {
	opened, err := w.Clusters.Open(ctx, w.name())
	if err != nil {
		return controlPlane{}, err
	}
	return w.planeOf(opened)
}

// planeOf returns the control plane of a cluster. The name for nodes is the name of the container,
// which kubeadm wrote into the cluster. The address for nodes is the address of the container. If the
// document publishes the API server at port 6443 and at an address that is not a loopback address,
// the address for nodes is the published one.
func (w kindPlane) planeOf(opened kindcluster.Opened) (found controlPlane, err error) {
	found.api = opened.API
	i := slices.IndexFunc(opened.Containers, func(c kindcluster.Container) bool {
		return c.Role == kindcluster.ControlPlaneRole
	})
	if i < 0 {
		return found, fmt.Errorf("cluster %s has no control plane: `swdt cluster delete` and `swdt up` make it anew",
			w.name())
	}
	found.name, found.address = opened.Containers[i].Name, opened.Containers[i].Address
	published := w.cluster.Cluster.Spec.ControlPlane.Kind
	if a, err := netip.ParseAddr(published.APIServerAddress); err == nil && !a.IsLoopback() &&
		published.APIServerPort == apiServerPort {
		found.address = published.APIServerAddress
	}
	return found, nil
}
