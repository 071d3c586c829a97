package transfer_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// If the node has the build that the last push left, Send uses the patch that was made ahead and
// does not measure the link.
func TestThePatchThatWasMadeAhead(t *testing.T) {
	old := content(3<<20, 1)
	want := rebuilt(old)
	d, _ := depot(t, old)
	d.RecordInstalled("kubelet", hashOf(old))
	n, file := pushed(t, nodetest.Link{}, d, old, want)
	file.Label = "kubelet"
	d.Ahead(t.Context(), file)
	if d.Diffs() != 1 {
		t.Fatalf("%d diffs ahead", d.Diffs())
	}
	result, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Method != transfer.MethodDelta:
		t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodDelta)
	case d.Diffs() != 1:
		t.Fatalf("d.Diffs() is %v, want 1", d.Diffs())
	}
	arrived(t, n, want)
	if got := names(n.Calls()); got != "Patch" {
		t.Errorf("calls: %s", got)
	}
}

// The depot records the build that the last push left in the store's folder, for the next process.
func TestDepotRemembersTheInstalledBuild(t *testing.T) {
	old := content(3<<20, 1)
	d, store := depot(t, old)
	d.RecordInstalled("kubelet", hashOf(old))
	next := transfer.NewDepot(store)
	file := local(t, rebuilt(old))
	file.Label = "kubelet"
	next.Ahead(t.Context(), file)
	if next.Diffs() != 1 {
		t.Errorf("%d diffs ahead", next.Diffs())
	}
	for name, change := range map[string]func(*transfer.File){
		"another program": func(f *transfer.File) { f.Label = "containerd" },
		"the same build":  func(f *transfer.File) { f.SHA256 = hashOf(old) },
		"a small file":    func(f *transfer.File) { f.Size = 1000 },
	} {
		other := file
		change(&other)
		if next.Ahead(t.Context(), other); next.Diffs() != 1 {
			t.Errorf("%s: %d diffs", name, next.Diffs())
		}
	}
}

// If the node has another build than the last push left, Send makes a patch for that build.
func TestAWrongGuessIsGivenUp(t *testing.T) {
	old, other := content(3<<20, 1), content(3<<20, 2)
	want := rebuilt(old)
	d, store := depot(t, old)
	if err := store.Put(t.Context(), local(t, other).Path, hashOf(other)); err != nil {
		t.Fatal(err)
	}
	d.RecordInstalled("kubelet", hashOf(other))
	n, file := pushed(t, slow(), d, old, want)
	file.Label = "kubelet"
	ahead := make(chan struct{})
	go func() { defer close(ahead); d.Ahead(t.Context(), file) }()
	result, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	<-ahead
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Method != transfer.MethodDelta:
		t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodDelta)
	}
	arrived(t, n, want)
}
