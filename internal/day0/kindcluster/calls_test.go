package kindcluster_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/ui"
)

// counting counts the questions to kind's library, each of which runs commands of the container runtime.
type counting struct {
	kindcluster.Kind
	mu    sync.Mutex
	calls map[string]int
}

func (c *counting) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[name]++
}

func (c *counting) List() ([]string, error) {
	c.count("List")
	return c.Kind.List()
}

func (c *counting) ListNodes(name string) ([]nodes.Node, error) {
	c.count("ListNodes")
	return c.Kind.ListNodes(name)
}

func (c *counting) KubeConfig(name string, internal bool) (string, error) {
	c.count("KubeConfig")
	return c.Kind.KubeConfig(name, internal)
}

// A second Ensure, and an Open, ask kind's library each question once, and return the access to the API
// server with the report.
func TestACompleteClusterIsAskedOnce(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	doc := document(t, "workers: 0")
	if _, err := open(t, k, folder).Ensure(t.Context(), doc, kindcluster.Options{}, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(*kindcluster.Clusters) (kindcluster.Opened, error){
		"Ensure": func(c *kindcluster.Clusters) (kindcluster.Opened, error) {
			return c.Ensure(t.Context(), doc, kindcluster.Options{}, ui.Discard{})
		},
		"Open": func(c *kindcluster.Clusters) (kindcluster.Opened, error) { return c.Open(t.Context(), "dev") },
	} {
		counted := &counting{Kind: k}
		opened, err := ask(open(t, counted, folder))
		if err != nil {
			t.Fatal(err)
		}
		if version, err := opened.API.Version(t.Context()); err != nil || version != "v1.36.3" {
			t.Errorf("%s: the access does not work: %s, %v", name, version, err)
		}
		want := map[string]int{"List": 1, "ListNodes": 1, "KubeConfig": 1}
		if diff := cmp.Diff(want, counted.calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
