package leftover

import (
	"context"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

const (
	// ownPrefix begins the name of each namespace of swdt itself.
	ownPrefix = "swdt-scale-"
	// OwnLabel is on each of these namespaces. Its value is the namespace's name, so a copy of the labels
	// on another namespace means nothing.
	OwnLabel = "swdt.dev/scale-test"
)

// BeginOwn records a run of swdt itself. Its namespace gets a new name, and is not made yet.
func (s *Store) BeginOwn(server string) (*Run, error) {
	return s.begin(Run{Server: server, Namespace: ownPrefix + randomHex(5)})
}

// MakeNamespace makes the namespace of a run of swdt itself.
func (r *Run) MakeNamespace(ctx context.Context, c *cluster.Cluster) error {
	_, err := c.Clientset().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: r.Namespace, Labels: map[string]string{
			"app.kubernetes.io/managed-by": "swdt", OwnLabel: r.Namespace, "pod-security.kubernetes.io/enforce": "restricted",
		}}}, metav1.CreateOptions{})
	return c.Failure("make namespace "+r.Namespace, permission("create", ""), err)
}

// removeOwn deletes the namespace of a run of swdt itself, and returns its name if it existed. The API
// server then deletes all that is in it.
func removeOwn(ctx context.Context, c *cluster.Cluster, name string, begun time.Time) ([]string, error) {
	if !regexp.MustCompile(`^` + ownPrefix + `[0-9a-f]{10}$`).MatchString(name) {
		return nil, fmt.Errorf("the namespace %q of a run is not one of swdt; remove the record of the run", name)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Limit)
	defer cancel()
	client := c.Clientset().CoreV1().Namespaces()
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, c.Failure("look for namespace "+name, permission("get", name), err)
	case found.Labels[OwnLabel] != name || found.UID == "" || found.DeletionTimestamp != nil:
		return nil, nil
	case found.CreationTimestamp.Time.Before(begun.Add(-maxSkew)):
		return nil, nil
	}
	err = client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.UID))})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		err = c.Failure("remove namespace "+name, permission("delete", name), err)
		return nil, fmt.Errorf("%w; remove it yourself: %s", err, remedy.KubectlCommand("delete", "namespace", name))
	}
	return []string{name}, nil
}
