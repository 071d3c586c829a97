package push

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// build returns a program of 2 MB; builds differ in a few places.
func (b *bench) build(version int) []byte {
	content := bytes.Repeat(program("kubelet", "v1.29.0"), 20)
	for i := range version {
		content[200_000*(i+1)]++
	}
	name := fmt.Sprintf("v1.29.%d", version)
	b.swap.versions[sum(content)] = name
	return content
}

// slowBench returns a bench with a node on a slow link and one component.
func slowBench(t *testing.T) *bench {
	b := newBench(t, v1alpha1.Provisioner{Name: "kubelet", SourceURL: "kubelet.exe", Destination: kubeletPath})
	b.node.Put(kubeletPath, b.build(0))
	b.swap.commandLines["kubelet"] = kubeletPath
	b.node.Node.Speed.Note(node.Reading{BytesPerSecond: 100e3, RoundTrip: time.Millisecond, At: time.Now()})
	return b
}

// mustPush pushes a build and returns the result of its transfer.
func (b *bench) mustPush(depot *transfer.Depot, version int) *transfer.Result {
	b.t.Helper()
	content := b.build(version)
	b.source("kubelet.exe", content)
	result, err := b.push(b.t.Context(), Options{Depot: depot})
	if err != nil {
		b.t.Fatal(err)
	}
	if !bytes.Equal(b.node.Get(kubeletPath), content) || len(b.leftovers()) != 0 {
		b.t.Fatalf("another file is live, or %v was left", b.leftovers())
	}
	return result.Components[0].Transfer
}

func TestTheNextBuildIsSentAsADifference(t *testing.T) {
	b := slowBench(t)
	depot := b.depot()
	if first := b.mustPush(depot, 1); first.Method != transfer.MethodWhole {
		t.Errorf("nobody here has the first base: %+v", first)
	}
	b.node.Calls()
	second := b.mustPush(depot, 2)
	switch {
	case second.Method != transfer.MethodDelta:
		t.Errorf("second.Method is %v, want %v", second.Method, transfer.MethodDelta)
	case second.SentBytes > 20_000:
		t.Errorf("second.SentBytes is %v, want at most 20_000", second.SentBytes)
	case second.SizeBytes < 2_000_000:
		t.Errorf("second.SizeBytes is %v, want at least 2_000_000", second.SizeBytes)
	}
	var calls []string
	for _, call := range b.node.Calls() {
		calls = append(calls, call[strings.LastIndex(call, "/")+1:])
	}
	if got := strings.Join(calls, " "); got != "Lock Patch Unlock" {
		t.Errorf("beside Inspect and the transaction: %s", got)
	}
	// Another run of swdt finds the base too.
	if third := b.mustPush(b.depot(), 3); third.Method != transfer.MethodDelta {
		t.Errorf("third.Method is %v, want %v", third.Method, transfer.MethodDelta)
	}
}

func TestPresentBinaryIsKeptAsABase(t *testing.T) {
	b := slowBench(t)
	b.source("kubelet.exe", b.build(0))
	if _, err := b.push(t.Context(), Options{Depot: b.depot(), DryRun: true}); err != nil {
		t.Fatal(err)
	}
	switch result, err := b.push(t.Context(), Options{Depot: b.depot()}); {
	case err != nil:
		t.Fatal(err)
	case result.Result != Unchanged:
		t.Fatalf("result.Result is %v, want %v", result.Result, Unchanged)
	}
	if first := b.mustPush(b.depot(), 1); first.Method != transfer.MethodDelta {
		t.Errorf("first.Method is %v, want %v", first.Method, transfer.MethodDelta)
	}
}

func TestTheKeptPreviousBinaryIsABase(t *testing.T) {
	b := slowBench(t)
	depot := b.depot()
	b.mustPush(depot, 1)
	b.node.Put(layout.Previous(kubeletPath), b.build(1))
	b.node.Put(kubeletPath, b.swap.program("kubelet", "somebody else's"))
	if result := b.mustPush(depot, 2); result.Method != transfer.MethodDelta {
		t.Errorf("result.Method is %v, want %v", result.Method, transfer.MethodDelta)
	}
}

// The connection breaks while the patch is sent.
func TestADifferenceIsSentAgainAfterACut(t *testing.T) {
	b := slowBench(t)
	depot := b.depot()
	b.mustPush(depot, 1)
	cuts := 0
	b.node.OnCall(func(method string) error {
		if strings.HasSuffix(method, "/Patch") && cuts == 0 {
			cuts++
			b.node.Cut()
		}
		return nil
	})
	second := b.mustPush(depot, 2)
	switch {
	case second.Method != transfer.MethodDelta:
		t.Errorf("second.Method is %v, want %v", second.Method, transfer.MethodDelta)
	case cuts != 1:
		t.Errorf("cuts is %v, want 1", cuts)
	case depot.Diffs() != 1:
		t.Errorf("depot.Diffs() is %v, want 1", depot.Diffs())
	case b.node.Sessions() != 2:
		t.Errorf("b.node.Sessions() is %v, want 2", b.node.Sessions())
	}
}

// A push sends the patch that was made ahead of it.
func TestTheDifferenceIsMadeAhead(t *testing.T) {
	b := slowBench(t)
	depot := b.depot()
	b.source("kubelet.exe", b.build(1))
	last, err := b.push(t.Context(), Options{Depot: depot})
	if err != nil {
		t.Fatal(err)
	}
	b.source("kubelet.exe", b.build(2))
	sources := source.NewSet(source.Options{Cache: filepath.Join(b.folder, "cache")})
	binary, err := sources.Obtain(t.Context(), SourceOf(b.doc, b.doc.Node.Spec.Kubernetes.Provisioners[0]),
		ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Prepare(t.Context(), b.node.Node, NodeResult{}, "kubelet", binary, depot); err != nil ||
		depot.Diffs() != 0 {
		t.Errorf("before the first push: %d diffs, %v", depot.Diffs(), err)
	}
	if err := Prepare(t.Context(), b.node.Node, last, "kubelet", binary, depot); err != nil || depot.Diffs() == 0 {
		t.Fatalf("%d diffs, %v", depot.Diffs(), err)
	}
	made := depot.Diffs()
	if result := b.mustPush(depot, 2); result.Method != transfer.MethodDelta || depot.Diffs() != made {
		t.Errorf("%d more diffs for %+v", depot.Diffs()-made, result)
	}
}
