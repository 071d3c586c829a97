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
)

const (
	// pollInterval is between two looks at a condition.
	pollInterval = 50 * time.Millisecond
	// lookTimeout is for one look.
	lookTimeout = 5 * time.Second
)

// awaitAPIServer waits for the API server, and lets administrators in. The client
// that it returns may do everything.
func (c *ControlPlane) awaitAPIServer(ctx context.Context) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.layout.kubeconfig("super-admin"))
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig that kubeadm made: %w", err)
	}
	config.QPS = -1 // client-go's default limit is for what looks less often
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
	return client, letAdministratorsIn(ctx, client)
}

// letAdministratorsIn gives their rights to the group that admin.conf is of, as
// kubeadm init does before it uses that file.
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

// upload has kubeadm put into the cluster what a node that joins reads.
func (c *ControlPlane) upload(ctx context.Context, client kubernetes.Interface) error {
	if err := c.layout.upload(ctx); err != nil {
		return err
	}
	// kubeadm always makes a token, too, which nobody knows: whoever has a node join
	// mints one.
	tokens := meta.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"}
	if err := client.CoreV1().Secrets(meta.NamespaceSystem).DeleteCollection(ctx, meta.DeleteOptions{}, tokens); err != nil {
		return fmt.Errorf("delete the bootstrap token that kubeadm made: %w", err)
	}
	return nil
}

// awaitControllers waits until controller-manager and scheduler were elected, and
// the former has made what pods need.
func (c *ControlPlane) awaitControllers(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range []string{controllerManager, scheduler} {
		if err := c.await(ctx, name+" to hold its lease", func(ctx context.Context) error {
			lease, err := client.CoordinationV1().Leases(meta.NamespaceSystem).Get(ctx, name, meta.GetOptions{})
			if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
				return errors.New("nobody holds it")
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

// await looks at a condition until it holds, a process of the control plane has
// died, or ctx is done.
func (c *ControlPlane) await(ctx context.Context, what string, condition func(context.Context) error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		last := condition(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-c.died:
			return fmt.Errorf("wait for %s: %w", what, c.deathErr)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last seen: %w", what, context.Cause(ctx), last)
		}
	}
}
