// Package control is the controller of a fleet: it carries out the decisions of package rollout against
// the API server.
//
//   - control.go: the manager, with leader election, metrics and probes
//   - watch.go: the events that lead to a decision
//   - reconcile.go: from the objects to a decision, and the status
//   - input.go: the nodes of a rollout; act.go: the actions
//
// It keeps nothing that a restart could lose: each action is one conditional write to a NodeState, and
// the next decision begins with what is written.
package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
)

// Options configure the controller.
type Options struct {
	// Namespace holds the lease of the leader election. Empty: there is no election.
	Namespace string
	// Lease is how long the lease of a leader that has died keeps others from leading. Default 15 s.
	Lease time.Duration
	// Metrics and Probes are addresses to listen on, such as :8080. "0": none.
	Metrics, Probes string
}

// The limits of the controller's requests to the API server, per second. They bound a burst; the number
// of requests is that of the decisions.
const (
	requestsPerSecond = 100
	requestBurst      = 200
)

// defaultLease is that of Kubernetes' own controllers.
const defaultLease = 15 * time.Second

// Run runs the controller until ctx ends or the leadership is lost.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = requestsPerSecond, requestBurst
	manager, err := newManager(config, o)
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	c, err := cluster.FromConfig(config)
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if err := watch(manager, newReconciler(manager.GetClient(), manager.GetAPIReader(), c)); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("run the controller: %w", err)
	}
	return nil
}

// newScheme returns the kinds that the controller reads and writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, fleetv1.AddToScheme(scheme)
}

func newManager(config *rest.Config, o Options) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	lease := cmp.Or(o.Lease, defaultLease)
	renew, retry := lease*2/3, lease*2/15
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: cached(),
		LeaderElection: o.Namespace != "", LeaderElectionID: "swdt-controller",
		LeaderElectionNamespace: o.Namespace, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		Metrics: metricsserver.Options{BindAddress: o.Metrics}, HealthProbeBindAddress: o.Probes,
	})
	if err != nil {
		return nil, err
	}
	if err := manager.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return nil, err
	}
	return manager, manager.AddReadyzCheck("alive", healthz.Ping)
}
