package up

import (
	"context"
	"net"
	"strconv"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
)

// planeKind makes and finds the control plane of a document.
type planeKind interface {
	// ensure makes the control plane, unless it exists.
	ensure(ctx context.Context, r ui.Reporter) (done, error)
	// access returns the access to the control plane, which must exist.
	access(ctx context.Context) (controlPlane, error)
}

func (w *work) plane() planeKind {
	if w.existing() {
		return existingPlane{w}
	}
	return kindPlane{w}
}

// existing reports whether another tool has made the cluster.
func (w *work) existing() bool { return w.cluster.Cluster.Spec.ControlPlane.Existing != nil }

// controlPlane is the access to the API server from your machine, and the name and the address by
// which nodes reach the API server.
type controlPlane struct {
	api *cluster.Cluster
	// name and address are those of the container of kind with the API server. They are empty for an
	// existing cluster, whose own address the nodes can reach.
	name, address string
}

// controlPlane returns the control plane of the cluster, which must exist. It calls the method access,
// and keeps the first result without an error for later calls.
func (w *work) controlPlane(ctx context.Context) (controlPlane, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.found != nil {
		return *w.found, nil
	}
	found, err := w.plane().access(ctx)
	if err == nil {
		w.found = &found
	}
	return found, err
}

// keep keeps the control plane for later calls of controlPlane, unless err is set.
func (w *work) keep(found controlPlane, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.found = &found
	}
}

// apiServerPort is the port of the API server in kind's containers.
const apiServerPort = 6443

// withControlPlane returns a node's document with the API server's name and address, if control has
// them. Settings that the document already has stay.
func withControlPlane(document config.Document, control controlPlane) config.Document {
	if control.name == "" {
		return document
	}
	own := &document.Node.Spec.Kubernetes.Join
	if own.ControlPlaneEndpoint == "" {
		own.ControlPlaneEndpoint = net.JoinHostPort(control.name, strconv.Itoa(apiServerPort))
	}
	if own.ControlPlaneAlias == nil {
		own.ControlPlaneAlias = &v1alpha1.ControlPlaneAlias{Name: control.name, IP: control.address}
	}
	return document
}
