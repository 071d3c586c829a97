package leftover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

const (
	// runLabel and frameworkLabel are on each namespace that e2e.test makes.
	runLabel, frameworkLabel = "e2e-run", "e2e-framework"
	// ownLabel has the ID of a run of swdt itself.
	ownLabel           = "swdt.dev/run"
	managedBy, manager = "app.kubernetes.io/managed-by", "swdt"
	// Limit bounds the removal of the namespaces of a run, which goes on after Ctrl-C.
	Limit = 20 * time.Second
	// makeLimit bounds the request for a namespace, which goes on after Ctrl-C too.
	makeLimit = 10 * time.Second
	// EndLimit is the time that an own run needs at most to end after Ctrl-C.
	EndLimit = makeLimit + Limit + 5*time.Second
	// maxSkew is how far the clock of the API server may be behind this machine's.
	maxSkew = time.Hour
)

// MakeNamespace makes a namespace of an own run, with the labels of the run and others. A request that has begun
// does not end with ctx: the API server may carry out a request that was cut off, and may do so only after the
// removal has looked for namespaces.
func (r *Run) MakeNamespace(ctx context.Context, c *cluster.Cluster, name string, others map[string]string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeLimit)
	defer cancel()
	labels := r.Labels()
	maps.Copy(labels, others)
	_, err := c.Clientset().CoreV1().Namespaces().Create(request,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	return c.Failure("make namespace "+name, permission("create", ""), err)
}

// remove deletes the namespaces with the ID of the run, and returns their names. The API server then
// deletes all that is in them.
func (r *Run) remove(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(r.ID) {
		return nil, fmt.Errorf("the ID %q of a run is not one of e2e.test; remove the record of the run", r.ID)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Limit)
	defer cancel()
	var found []corev1.Namespace
	client := c.Clientset().CoreV1().Namespaces()
	list := func(ctx context.Context, o metav1.ListOptions) (*corev1.NamespaceList, error) {
		o.LabelSelector = labels.SelectorFromSet(labels.Set{r.label(): r.ID}).String()
		return client.List(ctx, o)
	}
	err := cluster.Pages(ctx, list, func(page *corev1.NamespaceList) { found = append(found, page.Items...) })
	if err != nil {
		return nil, c.Failure("list the namespaces of the run", permission("list", ""), err)
	}
	var removed []string
	var failures []error
	for i := range found {
		if !r.made(&found[i]) {
			continue
		}
		err := client.Delete(ctx, found[i].Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(found[i].UID))})
		switch {
		case err == nil:
			removed = append(removed, found[i].Name)
		case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
			err = c.Failure("remove namespace "+found[i].Name, permission("delete", found[i].Name), err)
			failures = append(failures, fmt.Errorf("%w; remove it yourself: %s", err,
				remedy.KubectlCommand("delete", "namespace", found[i].Name)))
		}
	}
	slices.Sort(removed)
	return removed, errors.Join(failures...)
}

// label returns the label that has the run's ID.
func (r *Run) label() string {
	if r.Own {
		return ownLabel
	}
	return runLabel
}

// made reports whether the namespace was made in this run. It returns false for a namespace that is
// already being removed. A user can put labels on a namespace, but cannot change its creation time.
func (r *Run) made(n *corev1.Namespace) bool {
	if n.Labels[r.label()] != r.ID || n.UID == "" || n.DeletionTimestamp != nil {
		return false
	}
	if r.Own && n.Labels[managedBy] != manager || !r.Own && n.Labels[frameworkLabel] == "" {
		return false
	}
	if n.Name == metav1.NamespaceDefault || strings.HasPrefix(n.Name, "kube-") {
		return false
	}
	return !n.CreationTimestamp.Time.Before(r.Begun.Add(-maxSkew))
}

func permission(verb, name string) cluster.Permission {
	return cluster.Permission{Verb: verb, Resource: "namespaces", Name: name}
}
