package up

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/cluster"
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
	there, err := w.Clusters.Made(w.name())
	if err != nil {
		return done{}, err
	}
	if !there {
		if err := w.notes.change(func(made *record) { made.Cluster = true }); err != nil {
			return done{}, err
		}
	}
	report, err := w.Clusters.Create(ctx, w.cluster, kindcluster.Options{Kubeconfig: w.Kubeconfig}, r)
	if err != nil {
		return done{}, err
	}
	return done{report.Result == fleet.Changed, "Kubernetes " + report.Version + " at " + report.Server}, nil
}

// access returns the control plane of the cluster. The name for nodes is the name of the container,
// which kubeadm wrote into the cluster. The address for nodes is the address of the container. If the
// document publishes the API server at port 6443 and at an address that is not a loopback address,
// the address for nodes is the published one.
func (w kindPlane) access(ctx context.Context) (found controlPlane, err error) {
	report, err := w.Clusters.Status(ctx, w.name())
	if err != nil {
		return found, err
	}
	i := slices.IndexFunc(report.Containers, func(c kindcluster.Container) bool {
		return c.Role == kindcluster.ControlPlaneRole
	})
	if i < 0 {
		return found, fmt.Errorf("cluster %s has no control plane: `swdt cluster delete` and `swdt up` make it anew",
			w.name())
	}
	found.name, found.address = report.Containers[i].Name, report.Containers[i].Address
	published := w.cluster.Cluster.Spec.ControlPlane.Kind
	if a, err := netip.ParseAddr(published.APIServerAddress); err == nil && !a.IsLoopback() &&
		published.APIServerPort == apiServerPort {
		found.address = published.APIServerAddress
	}
	text, err := w.Clusters.Kubeconfig(w.name(), false)
	if err != nil {
		return found, err
	}
	access, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return found, fmt.Errorf("read the kubeconfig of cluster %s: %w", w.name(), err)
	}
	found.api, err = cluster.FromConfig(access)
	return found, err
}
