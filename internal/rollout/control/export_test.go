package control

import (
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// NewReconciler returns the controller's decisions without its watch, by this clock.
func NewReconciler(config *rest.Config, now func() time.Time) (reconcile.Reconciler, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	c, err := cluster.FromConfig(config)
	if err != nil {
		return nil, err
	}
	r := newReconciler(direct, direct, c)
	r.now = now
	return r, nil
}
