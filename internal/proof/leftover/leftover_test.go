package leftover_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	id    = "01234567-89ab-cdef-0123-456789abcdef"
	other = "fedcba98-89ab-cdef-0123-456789abcdef"
)

// namespace returns a namespace as e2e.test makes it in the run with an ID.
func namespace(name, run string, change ...func(*corev1.Namespace)) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		CreationTimestamp: metav1.Now(), Labels: map[string]string{"e2e-run": run, "e2e-framework": "pods"}}}
	for _, c := range change {
		c(n)
	}
	return n
}

// world is a cluster in memory that notes deletions.
type world struct {
	*cluster.Cluster
	deleted []string
}

func newWorld(t *testing.T, all ...*corev1.Namespace) *world {
	t.Helper()
	client := fake.NewClientset()
	w := &world{Cluster: cluster.FromClients("https://api", client, nil), deleted: []string{}}
	for _, n := range all {
		if err := client.Tracker().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	client.PrependReactor("delete", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		d := a.(clienttesting.DeleteActionImpl)
		uid := types.UID("")
		if p := d.DeleteOptions.Preconditions; p != nil && p.UID != nil {
			uid = *p.UID
		}
		w.deleted = append(w.deleted, d.Name+" "+string(uid))
		return false, nil, nil
	})
	return w
}

// begin records a run whose output has the text.
func begin(t *testing.T, s *leftover.Store, text string) *leftover.Run {
	t.Helper()
	output := filepath.Join(t.TempDir(), "output.log")
	r, err := s.Begin("https://api", output)
	if err != nil {
		t.Fatal(err)
	}
	if text != "" {
		if err := os.WriteFile(output, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

const started = `I1123 10:00:00.000000 1 e2e.go:109] Starting e2e run "` + id + `" on Ginkgo node 1
Running Suite: x
`

func store(t *testing.T) (*leftover.Store, string) {
	t.Helper()
	folder := t.TempDir()
	s, err := leftover.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return s, folder
}

// empty fails the test if the store still has a record.
func empty(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestOnlyNamespacesOfTheRunAreRemoved(t *testing.T) {
	w := newWorld(t, namespace("pods-1", id), namespace("pods-2", id), namespace("pods-3", other),
		namespace("no-framework", id, func(n *corev1.Namespace) { delete(n.Labels, "e2e-framework") }),
		namespace("old", id, func(n *corev1.Namespace) {
			n.CreationTimestamp = metav1.NewTime(time.Now().Add(-9 * time.Hour))
		}),
		namespace("kube-system", id), namespace("default", id),
		namespace("ending", id, func(n *corev1.Namespace) { n.DeletionTimestamp = &n.CreationTimestamp }))
	s, folder := store(t)
	removed, err := begin(t, s, started).End(t.Context(), w.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pods-1", "pods-2"}, removed); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pods-1 uid-pods-1", "pods-2 uid-pods-2"}, w.deleted); diff != "" {
		t.Errorf("the deletions with their UIDs (-want +got)\n%s", diff)
	}
	empty(t, folder)
}

func TestTidyRemovesWhatKilledRunsLeft(t *testing.T) {
	w := newWorld(t, namespace("pods-1", id), namespace("pods-3", other))
	s, folder := store(t)
	killed := begin(t, s, started)
	if removed := s.Tidy(t.Context(), w.Cluster, ui.Discard{}); len(removed) > 0 {
		t.Errorf("the namespaces of a run that still works were removed: %q", removed)
	}
	if err := killed.Lock().Close(); err != nil { // as the end of all its processes does
		t.Fatal(err)
	}
	elsewhere := cluster.FromClients("https://another", fake.NewClientset(), nil)
	if removed := s.Tidy(t.Context(), elsewhere, ui.Discard{}); len(removed) > 0 {
		t.Errorf("removed from another cluster: %q", removed)
	}
	if diff := cmp.Diff([]string{"pods-1"}, s.Tidy(t.Context(), w.Cluster, ui.Discard{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	empty(t, folder)
}

func TestARunThatMadeNothingIsForgotten(t *testing.T) {
	for _, text := range []string{"", "killed at once", "Starting e2e run \"x or y\" on Ginkgo node 1\n"} {
		w := newWorld(t, namespace("pods-1", id))
		s, folder := store(t)
		if err := begin(t, s, text).Lock().Close(); err != nil {
			t.Fatal(err)
		}
		if removed := s.Tidy(t.Context(), w.Cluster, ui.Discard{}); len(removed) > 0 || len(w.deleted) > 0 {
			t.Errorf("removed %q", removed)
		}
		empty(t, folder)
	}
}

// A record that anything else has written selects nothing but what e2e.test's IDs can.
func TestAPlantedRecordSelectsNothing(t *testing.T) {
	w := newWorld(t, namespace("pods-1", id))
	s, folder := store(t)
	text := `{"server":"https://api","id":"x,e2e-framework","output":"/dev/null","begun":"` +
		time.Now().Format(time.RFC3339) + `"}`
	if err := os.WriteFile(filepath.Join(folder, "planted.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if removed := s.Tidy(t.Context(), w.Cluster, ui.Discard{}); len(removed) > 0 || len(w.deleted) > 0 {
		t.Errorf("removed %q, asked for %q", removed, w.deleted)
	}
}

// own returns a namespace as a run of swdt itself makes it.
func own(name string, change ...func(*corev1.Namespace)) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		CreationTimestamp: metav1.Now(), Labels: map[string]string{leftover.OwnLabel: name}}}
	for _, c := range change {
		c(n)
	}
	return n
}

func TestTheNamespaceOfAKilledRunOfSwdtIsRemoved(t *testing.T) {
	w := newWorld(t, namespace("pods-1", id))
	s, folder := store(t)
	r, err := s.BeginOwn("https://api")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Clientset().(*fake.Clientset).Tracker().Add(own(r.Namespace)); err != nil {
		t.Fatal(err)
	}
	if removed := s.Tidy(t.Context(), w.Cluster, ui.Discard{}); len(removed) > 0 {
		t.Errorf("the namespace of a run that still works was removed: %q", removed)
	}
	if err := r.Lock().Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{r.Namespace}, s.Tidy(t.Context(), w.Cluster, ui.Discard{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{r.Namespace + " uid-" + r.Namespace}, w.deleted); diff != "" {
		t.Errorf("the deletions with their UIDs (-want +got)\n%s", diff)
	}
	empty(t, folder)
}

// A namespace that only has the name of a run's is not removed, and neither is one that a planted record names.
func TestNamespacesOfOthersStay(t *testing.T) {
	for name, change := range map[string]func(*corev1.Namespace){
		"no label":        func(n *corev1.Namespace) { n.Labels = nil },
		"another's label": func(n *corev1.Namespace) { n.Labels[leftover.OwnLabel] = "swdt-scale-0123456789" },
		"older": func(n *corev1.Namespace) {
			n.CreationTimestamp = metav1.NewTime(time.Now().Add(-9 * time.Hour))
		},
		"already removed":  func(n *corev1.Namespace) { n.DeletionTimestamp = &n.CreationTimestamp },
		"without identity": func(n *corev1.Namespace) { n.UID = "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, folder := store(t)
			r, err := s.BeginOwn("https://api")
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Clientset().(*fake.Clientset).Tracker().Add(own(r.Namespace, change)); err != nil {
				t.Fatal(err)
			}
			removed, err := r.End(t.Context(), w.Cluster)
			if err != nil || len(removed) > 0 || len(w.deleted) > 0 {
				t.Errorf("removed %q, asked for %q: %v", removed, w.deleted, err)
			}
			empty(t, folder)
		})
	}
	w := newWorld(t, own("kube-system"))
	s, folder := store(t)
	text := `{"server":"https://api","namespace":"kube-system","begun":"` + time.Now().Format(time.RFC3339) + `"}`
	if err := os.WriteFile(filepath.Join(folder, "planted.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if removed := s.Tidy(t.Context(), w.Cluster, ui.Discard{}); len(removed) > 0 || len(w.deleted) > 0 {
		t.Errorf("removed %q, asked for %q", removed, w.deleted)
	}
}
