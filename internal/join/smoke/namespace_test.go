package smoke_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
)

// Ctrl-C ends the run at once, and the namespace is removed all the same.
func TestInterruptedRunRemovesItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctrlC := newWorld(t), errors.New("Ctrl-C")
		ctx, cancel := context.WithCancelCause(t.Context())
		w.started = func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
		}
		time.AfterFunc(7*time.Second, func() { cancel(ctrlC) })
		begin := time.Now()
		report, err := w.run(ctx, smoke.Options{})
		if !errors.Is(err, ctrlC) || time.Since(begin) > 7*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		want := []string{"started notRun", "logs-and-exec notRun"}
		if diff := cmp.Diff(want, unpassed(report.Nodes[0])[:2]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.nothingIsLeft(t, report)
	})
}

// An API server that refuses an object is an error, and nothing is left.
func TestRefusedObjectsLeaveNothing(t *testing.T) {
	for _, resource := range []string{"serviceaccounts", "services", "pods"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.client.PrependReactor("create", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "x", errors.New("quota"))
			})
			report, err := w.run(t.Context(), smoke.Options{})
			var forbidden *cluster.ForbiddenError
			if !errors.As(err, &forbidden) || !strings.Contains(err.Error(), "quota") {
				t.Errorf("%s: %v", resource, err)
			}
			w.nothingIsLeft(t, report)
		})
	}
}

func TestKeptNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		report, err := w.run(t.Context(), smoke.Options{Keep: true})
		if err != nil || !report.Kept || len(w.deleted) > 0 {
			t.Fatalf("%v, kept %v, deleted %v", err, report.Kept, w.deleted)
		}
		// It is no leftover for a later run, however old it is.
		w.now = w.now.Add(100 * time.Hour)
		if again, err := w.run(t.Context(), smoke.Options{}); err != nil || len(again.Leftovers) > 0 {
			t.Errorf("%v, leftovers %v", err, again.Leftovers)
		}
	})
}

// A run removes the namespaces of killed runs, and no other ones, whatever other users of the cluster
// have written on theirs.
func TestOnlyLeftoversOfKilledRunsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := func(name string, change func(*corev1.Namespace)) {
			n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-" + "it",
				CreationTimestamp: metav1.NewTime(w.now.Add(-time.Hour)), Labels: map[string]string{
					"app.kubernetes.io/managed-by": "swdt", "swdt.dev/smoke-test": name},
				Annotations: map[string]string{"swdt.dev/smoke-limit": "30m0s"}}}
			if change != nil {
				change(n)
			}
			w.add(t, n)
		}
		old("swdt-smoke-killed", nil)
		old("swdt-smoke-running", func(n *corev1.Namespace) { n.Annotations["swdt.dev/smoke-limit"] = "2h0m0s" })
		old("swdt-smoke-kept", func(n *corev1.Namespace) { n.Annotations = nil })
		old("swdt-smoke-copied", func(n *corev1.Namespace) { n.Labels["swdt.dev/smoke-test"] = "swdt-smoke-killed" })
		old("swdt-smoke-unlabelled", func(n *corev1.Namespace) { n.Labels = nil })
		old("swdt-smoke-odd", func(n *corev1.Namespace) { n.Annotations["swdt.dev/smoke-limit"] = "-1h" })
		old("production", nil)
		old("swdt-smoke-ending", func(n *corev1.Namespace) { n.DeletionTimestamp = &n.CreationTimestamp })

		plan, err := smoke.NewPlan(t.Context(), w.cluster(), smoke.Options{})
		if err != nil || len(w.created)+len(w.deleted) > 0 {
			t.Errorf("the plan made %v and deleted %v: %v", w.created, w.deleted, err)
		}
		if len(plan.Objects) != 6 {
			t.Errorf("the plan has %d objects, want 6: %+v", len(plan.Objects), plan.Objects)
		}
		report, err := w.run(t.Context(), smoke.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"swdt-smoke-killed"}, report.Leftovers); diff != "" {
			t.Errorf("leftovers (-want +got):\n%s", diff)
		}
		want := []string{"swdt-smoke-killed uid-of-it", report.Namespace + " uid-of-" + report.Namespace}
		if diff := cmp.Diff(want, w.deleted); diff != "" {
			t.Errorf("deleted (-want +got):\n%s", diff)
		}
	})
}

// A namespace that another user made anew under the same name stays.
func TestANamespaceOfTheSameNameStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.client.PrependReactor("create", "services", func(a clienttesting.Action) (bool, runtime.Object, error) {
			namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
			live, err := w.client.Tracker().Get(namespaces, "", a.GetNamespace())
			if err != nil {
				return true, nil, err
			}
			other := live.(*corev1.Namespace).DeepCopy()
			other.UID = "another"
			return false, nil, w.client.Tracker().Update(namespaces, other, "")
		})
		if _, err := w.run(t.Context(), smoke.Options{}); err != nil || len(w.deleted) > 0 {
			t.Errorf("deleted %v: %v", w.deleted, err)
		}
	})
}
