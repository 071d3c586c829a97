package smoke

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

const (
	managedBy, manager = "app.kubernetes.io/managed-by", "swdt"
	// prefix begins the name of each namespace that a run makes.
	prefix = "swdt-smoke-"
	// ownerLabel is on each namespace that a run makes. Its value is the namespace's name, so a
	// copy of the labels on another namespace means nothing.
	ownerLabel = "swdt.dev/smoke-test"
	// limitAnnotation holds the maximum duration of the run that made the namespace. The namespace
	// of a run with --keep does not have this annotation, so no other run removes it.
	limitAnnotation = "swdt.dev/smoke-limit"
	// removeLimit bounds the removal of a namespace. The removal goes on after Ctrl-C.
	removeLimit = 20 * time.Second
	// makeLimit bounds the request for a namespace.
	makeLimit = 10 * time.Second
)

// namespaces makes and removes the namespaces of runs.
type namespaces struct{ c *cluster.Cluster }

// make makes a namespace with a new name. If o.Keep is true, no later run removes the namespace. The request
// does not end with ctx, since the API server may carry out a request that was cut off.
func (n namespaces) make(ctx context.Context, o Options) (*corev1.Namespace, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeLimit)
	defer cancel()
	random := make([]byte, 5)
	_, _ = rand.Read(random) // never fails
	name := prefix + hex.EncodeToString(random)
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{
			managedBy: manager, ownerLabel: name, "pod-security.kubernetes.io/enforce": "restricted",
		},
		Annotations: map[string]string{limitAnnotation: o.limit().String()},
	}}
	maps.Copy(wanted.Labels, o.Labels)
	if o.Keep {
		wanted.Annotations = nil
	}
	made, err := n.c.Clientset().CoreV1().Namespaces().Create(request, wanted, metav1.CreateOptions{})
	return made, n.c.Failure("make namespace "+name, namespacePermission("create", ""), err)
}

// remove deletes a namespace, unless another namespace has the same name by now. The API server
// then deletes everything in the namespace.
func (n namespaces) remove(ctx context.Context, namespace *corev1.Namespace) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	err := n.c.Clientset().CoreV1().Namespaces().Delete(ctx, namespace.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(namespace.UID))})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	err = n.c.Failure("remove namespace "+namespace.Name, namespacePermission("delete", namespace.Name), err)
	return fmt.Errorf("%w; remove it yourself: %s", err, remedy.KubectlCommand("delete", "namespace", namespace.Name))
}

// leftovers returns the namespaces of killed runs. A run counts as killed if its namespace is older
// than the maximum duration of the run. now is the present time.
func (n namespaces) leftovers(ctx context.Context, now time.Time) ([]*corev1.Namespace, error) {
	var left []*corev1.Namespace
	list := func(ctx context.Context, o metav1.ListOptions) (*corev1.NamespaceList, error) {
		o.LabelSelector = ownerLabel
		return n.c.Clientset().CoreV1().Namespaces().List(ctx, o)
	}
	err := cluster.Pages(ctx, list, func(page *corev1.NamespaceList) {
		for i := range page.Items {
			if isLeftover(&page.Items[i], now) {
				left = append(left, &page.Items[i])
			}
		}
	})
	return left, n.c.Failure("look for namespaces of earlier runs", namespacePermission("list", ""), err)
}

// isLeftover reports whether a run has made the namespace, and has ended without removing it.
func isLeftover(n *corev1.Namespace, now time.Time) bool {
	limit, err := time.ParseDuration(n.Annotations[limitAnnotation])
	switch {
	case !strings.HasPrefix(n.Name, prefix) || n.Labels[ownerLabel] != n.Name:
		return false
	case err != nil || limit <= 0 || n.UID == "" || n.DeletionTimestamp != nil:
		return false
	}
	return now.Sub(n.CreationTimestamp.Time) > limit
}

// removeLeftovers removes the namespaces of killed runs, and returns the names of these namespaces.
// The parameter now is the API server's time. A failure is only a warning, since the present run
// does not depend on the removal.
func (n namespaces) removeLeftovers(ctx context.Context, now time.Time, r ui.Reporter) (removed []string) {
	left, err := n.leftovers(ctx, now)
	if err != nil {
		r.Warn("%v", err)
	}
	for _, namespace := range left {
		if err := n.remove(ctx, namespace); err != nil {
			r.Warn("%v", err)
			continue
		}
		r.Info("removed namespace %s, which a killed run has left", namespace.Name)
		removed = append(removed, namespace.Name)
	}
	return removed
}

func namespacePermission(verb, name string) cluster.Permission {
	return cluster.Permission{Verb: verb, Resource: "namespaces", Name: name}
}
