package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Pages requests a list page by page, and returns the error of a page that fails.
func TestPages(t *testing.T) {
	var asked []string
	list := func(_ context.Context, o metav1.ListOptions) (*corev1.EventList, error) {
		asked = append(asked, o.Continue)
		page := &corev1.EventList{Items: []corev1.Event{{Reason: "after " + o.Continue}}}
		page.Continue = map[string]string{"": "one", "one": "two"}[o.Continue]
		if o.Limit == 0 {
			return nil, errors.New("all at once")
		}
		return page, nil
	}
	var got []string
	take := func(page *corev1.EventList) { got = append(got, page.Items[0].Reason) }
	switch err := cluster.Pages(t.Context(), list, take); {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case !slices.Equal(asked, []string{"", "one", "two"}):
		t.Errorf("asked = %v, want %v", asked, []string{"", "one", "two"})
	case len(got) != 3:
		t.Errorf("len(got) = %v, want 3; asked after %q, got %q, %v", len(got), asked, got, err)
	}
	failing := func(ctx context.Context, o metav1.ListOptions) (*corev1.EventList, error) {
		if o.Continue == "one" {
			return nil, context.DeadlineExceeded
		}
		return list(ctx, o)
	}
	if err := cluster.Pages(t.Context(), failing, take); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a page that failed: %v", err)
	}
}

func TestEventsAbout(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	n := 0
	event := func(kind, namespace, name, host string) *corev1.Event {
		n++
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("e%02d", n),
				CreationTimestamp: metav1.NewTime(at)},
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name},
			Source:         corev1.EventSource{Host: host},
			LastTimestamp:  metav1.NewTime(at.Add(-time.Duration(n) * time.Minute)),
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.PodSpec{NodeName: "win-1"}}
	c, _ := fakeCluster(pod,
		event("Node", "", "win-1", ""), event("Node", "", "win-2", "win-2"), event("Pod", "default", "web", ""),
		event("Pod", "other", "web", "win-2"),
		event("Pod", "default", "gone", "win-1"))
	pods, err := c.PodsOn(t.Context(), "win-1")
	if err != nil || len(pods) != 1 {
		t.Fatalf("%v, %v", pods, err)
	}
	names := func(most int) (names []string) {
		events, err := c.EventsAbout(t.Context(), "win-1", pods, most)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			names = append(names, e.Name)
		}
		return names
	}
	if got := names(10); !slices.Equal(got, []string{"e05", "e03", "e01"}) {
		t.Errorf("events %v", got)
	}
	if got := names(1); !slices.Equal(got, []string{"e01"}) {
		t.Errorf("the newest is %v", got)
	}
}

func TestObjectsThatAreNotThere(t *testing.T) {
	c, _ := fakeCluster()
	var none *cluster.NoNodeError
	if _, err := c.NodeObject(t.Context(), "win-9"); !errors.As(err, &none) || none.Node != "win-9" {
		t.Errorf("no node: %v", err)
	}
	if lease, err := c.LeaseObject(t.Context(), "win-9"); err != nil || lease != nil {
		t.Errorf("no lease: %v, %v", lease, err)
	}
	if classes, err := c.RuntimeClasses(t.Context()); err != nil || len(classes) != 0 {
		t.Errorf("no RuntimeClasses: %v, %v", classes, err)
	}
}

func TestWaitingAndRestarts(t *testing.T) {
	status := func(name string, restarts int32, reason, message string) corev1.ContainerStatus {
		s := corev1.ContainerStatus{Name: name, RestartCount: restarts}
		if reason != "" {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
		}
		return s
	}
	p := &corev1.Pod{Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{status("init", 7, "", "")},
		ContainerStatuses: []corev1.ContainerStatus{status("a", 1, "ErrImagePull", "no such image\nnor registry"),
			status("b", 0, "ContainerCreating", "")},
	}}
	if got := cluster.Waiting(p); !slices.Equal(got, []string{"a: ErrImagePull: no such image",
		"b: ContainerCreating"}) || cluster.Restarts(p) != 7 {
		t.Errorf("waits for %q, restarted %d times", got, cluster.Restarts(p))
	}
}
