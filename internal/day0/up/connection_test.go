package up

import (
	"context"
	"errors"
	"testing"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// nodeDocument returns the document of a node that joins.
func nodeDocument(name string) config.Document {
	document := config.Document{File: "nodes.yaml", Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: name}}}
	document.Node.Spec.Kubernetes.Version = "1.36.3"
	return document
}

// The stages of a node share one connection, which a second run makes while the control plane is
// compared. A connection that failed is made again.
func TestOneConnectionForEachNode(t *testing.T) {
	calls, broken := map[string]int{}, errors.New("broken")
	var failing error
	w := &work{notes: open(t, t.TempDir()), documents: []config.Document{nodeDocument("a"), nodeDocument("b")}}
	w.documents[1].Node.Spec.Machine = &v1alpha1.Machine{}
	w.Reporter = discard
	w.Connect = func(_ context.Context, d config.Document, _ ui.Reporter) (*node.Node, error) {
		calls[d.Node.Metadata.Name]++ // no lock: connect waits for the end of each call
		return nil, failing
	}
	control := &stage{kind: Cluster}
	machine := &stage{kind: Machine, node: "b"}
	all := []*stage{control, {kind: Join, node: "a", needs: []*stage{control, nil}},
		machine, {kind: Join, node: "b", needs: []*stage{control, machine}}}
	use := func(name string, want int) {
		t.Helper()
		_, err := w.connect(t.Context(), nodeDocument(name), ui.Discard{})
		if !errors.Is(err, failing) || calls[name] != want {
			t.Errorf("%s: %d connections, want %d; %v", name, calls[name], want, err)
		}
	}
	w.connectEarly(t.Context(), all)
	if len(w.connections) > 0 {
		t.Error("a first run connects before the cluster exists")
	}
	w.reached("cluster", succeeded)
	w.reached("machine of b", succeeded)
	w.connectEarly(t.Context(), all)
	if len(w.connections) != 1 {
		t.Errorf("%d connections, want one: a VM's address is known only when it runs", len(w.connections))
	}
	use("a", 1)
	use("a", 1)
	use("b", 1)
	w.reconnect(t.Context(), "a")
	use("a", 2)
	w.disconnect(t.Context())
	failing = broken
	use("a", 3)
	use("a", 4)
	w.disconnect(t.Context())
}
