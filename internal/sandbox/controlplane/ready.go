package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// pollInterval is the time between two checks of a condition.
	pollInterval = 50 * time.Millisecond
	// lookTimeout bounds one check.
	lookTimeout = 5 * time.Second
)

// awaitAPIServer waits for the API server. The returned client may do everything.
func (c *ControlPlane) awaitAPIServer(ctx context.Context) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.layout.kubeconfig("super-admin"))
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig that kubeadm made: %w", err)
	}
	config.QPS = -1 // client-go's default limit is too low for this polling
	config.Timeout = lookTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("a client of %s: %w", c.Server(), err)
	}
	if err := c.await(ctx, "the API server to be ready", func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return nil, err
	}
	return client, nil
}

// letAdministratorsIn grants the administrators' rights to the group of admin.conf, as kubeadm init
// does before it uses that file.
func letAdministratorsIn(ctx context.Context, client kubernetes.Interface) error {
	const name = "kubeadm:cluster-admins"
	binding := &rbac.ClusterRoleBinding{
		ObjectMeta: meta.ObjectMeta{Name: name},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbac.Subject{{Kind: rbac.GroupKind, Name: name}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, meta.CreateOptions{}); err != nil {
		return fmt.Errorf("give the administrators their rights: %w", err)
	}
	return nil
}

// upload makes kubeadm write into the cluster the objects that a joining node reads.
func (c *ControlPlane) upload(ctx context.Context, client kubernetes.Interface) error {
	if err := c.layout.upload(ctx); err != nil {
		return err
	}
	// kubeadm always creates a token too, which no caller knows. Delete it: a caller that joins a
	// node creates another one.
	tokens := meta.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"}
	if err := client.CoreV1().Secrets(meta.NamespaceSystem).DeleteCollection(ctx, meta.DeleteOptions{},
		tokens); err != nil {
		return fmt.Errorf("delete the bootstrap token that kubeadm made: %w", err)
	}
	return nil
}

// awaitControllers waits until controller-manager and scheduler are elected, and until the
// controller-manager has created the default service account, which pods need.
func (c *ControlPlane) awaitControllers(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range []string{controllerManager, scheduler} {
		if err := c.await(ctx, name+" to hold its lease", func(ctx context.Context) error {
			lease, err := client.CoordinationV1().Leases(meta.NamespaceSystem).Get(ctx, name, meta.GetOptions{})
			if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
				return errors.New("no process holds it")
			}
			return err
		}); err != nil {
			return err
		}
	}
	return c.await(ctx, "the default service account", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(meta.NamespaceDefault).Get(ctx, "default", meta.GetOptions{})
		return err
	})
}

// await checks a condition until it holds, a process of the control plane has ended, or ctx is
// done.
func (c *ControlPlane) await(ctx context.Context, what string, condition func(context.Context) error) error {
	return wait.Condition{
		Name:     what,
		Interval: pollInterval,
		Look: func(ctx context.Context) error {
			state := condition(ctx)
			if state == nil {
				return nil
			}
			select {
			case <-c.died:
				return wait.Stop(fmt.Errorf("wait for %s: %w", what, c.deathErr))
			default:
				return state
			}
		},
	}.Wait(ctx)
}
