package transfer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
)

const live = `C:\k\kubelet.exe`

// slow returns a link over which sending all of a few megabytes takes longer than every other way.
func slow() nodetest.Link { return nodetest.Link{BytesPerSecond: 4 << 20, Delay: 2 * time.Millisecond} }

// rebuilt returns a copy of old with an insertion in the middle and small changes everywhere.
func rebuilt(old []byte) []byte {
	half := len(old) / 2
	out := append(bytes.Clone(old[:half]), "one more line in one function"...)
	out = append(out, old[half:]...)
	for i := 0; i < len(out); i += 10_000 {
		out[i]++
	}
	return out
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// depot returns a Depot whose store holds the contents.
func depot(t *testing.T, contents ...[]byte) (*transfer.Depot, *blobs.Store) {
	t.Helper()
	store, err := blobs.Open(filepath.Join(t.TempDir(), "blobs"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range contents {
		file := local(t, content)
		if err := store.Put(t.Context(), file.Path, file.SHA256); err != nil {
			t.Fatal(err)
		}
	}
	return transfer.NewDepot(store), store
}

// pushed returns a node with old as its live binary, and the file that will replace it.
func pushed(t *testing.T, link nodetest.Link, d *transfer.Depot, old, wanted []byte) (*nodetest.Node, transfer.File) {
	t.Helper()
	n := start(t)
	n.Put(live, old)
	n.Shape(link)
	if err := n.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Calls()
	file := local(t, wanted)
	file.Depot, file.Absent = d, true
	file.Bases = []transfer.Base{{Path: live, SHA256: hashOf(old), Size: int64(len(old))}}
	return n, file
}

func names(calls []string) string {
	var short []string
	for _, call := range calls {
		short = append(short, call[strings.LastIndex(call, "/")+1:])
	}
	return strings.Join(short, " ")
}

func arrived(t *testing.T, n *nodetest.Node, want []byte) {
	t.Helper()
	if !bytes.Equal(n.Get(destination), want) {
		t.Error("another file arrived")
	}
	if n.Get(transfer.Part(destination)) != nil {
		t.Error("the part is still there")
	}
}

func TestOnASlowLinkTheDifferenceIsSent(t *testing.T) {
	old := content(6<<20, 1)
	want := rebuilt(old)
	d, _ := depot(t, old)
	n, file := pushed(t, slow(), d, old, want)
	r := &counting{}
	result, err := transfer.Send(t.Context(), n.Node, file, destination, r)
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Method != transfer.MethodDelta:
		t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodDelta)
	case result.SizeBytes != file.Size:
		t.Fatalf("result.SizeBytes is %v, want %v", result.SizeBytes, file.Size)
	}
	arrived(t, n, want)
	switch {
	case result.SentBytes > 200_000:
		t.Errorf("result.SentBytes is %v, want at most 200_000", result.SentBytes)
	case result.SentBytes <= 64<<10:
		t.Errorf("result.SentBytes is %v, want more than %v", result.SentBytes, 64<<10)
	case result.Variant == "":
		t.Error("result.Variant is empty")
	case result.DiffSeconds <= 0:
		t.Errorf("result.DiffSeconds is %v, want more than 0", result.DiffSeconds)
	}
	if r.done != r.total || r.ended != 1 {
		t.Errorf("progress of %d of %d, ended %d times", r.done, r.total, r.ended)
	}
	if got := names(n.Calls()); got != "Probe Patch" {
		t.Errorf("calls: %s", got)
	}
	info, err := n.Files.Stat(destination)
	if err != nil || info.Modified.Sub(file.Modified).Abs() > time.Microsecond {
		t.Errorf("time %v, %v; want %v", info.Modified, err, file.Modified)
	}
	// From here on, the speed of the link is known.
	made := d.Diffs()
	if err := n.Files.Remove(destination); err != nil {
		t.Fatal(err)
	}
	again, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	switch {
	case err != nil:
		t.Error(err)
	case again.Method != transfer.MethodDelta:
		t.Errorf("again.Method is %v, want %v", again.Method, transfer.MethodDelta)
	case again.SentBytes > result.SentBytes-64<<10:
		t.Errorf("again.SentBytes is %v, want at most %v", again.SentBytes, result.SentBytes-64<<10)
	}
	if got := names(n.Calls()); got != "Patch" {
		t.Errorf("calls: %s", got)
	}
	// On a slow machine, the measured link may be worth the other variant, which may exist by now.
	if again.Variant == result.Variant && d.Diffs() != made {
		t.Errorf("%d diffs after the first push, and %d after the second", made, d.Diffs())
	}
}

func TestInMemoryAllOfItIsSent(t *testing.T) {
	old := content(6<<20, 1)
	want := rebuilt(old)
	d, _ := depot(t, old)
	n, file := pushed(t, nodetest.Link{}, d, old, want)
	n.Speed.Note(node.Reading{RoundTrip: 100 * time.Microsecond, BytesPerSecond: 600e6, At: time.Now()})
	result, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Method != transfer.MethodWhole:
		t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodWhole)
	}
	arrived(t, n, want)
}

// A file is no base if the host does not hold it or the node has changed it meanwhile.
func TestWithoutTheBaseAllOfItIsSent(t *testing.T) {
	old, other := content(3<<20, 1), content(3<<20, 2)
	want := rebuilt(old)
	for name, c := range map[string]struct {
		held    []byte // in the store
		spoil   func(store *blobs.Store, n *nodetest.Node)
		patched bool // a patch was tried
	}{
		"not held": {held: other},
		"damaged here": {held: old, spoil: func(store *blobs.Store, _ *nodetest.Node) {
			path, err := store.Path(t.Context(), hashOf(old))
			if err != nil || os.WriteFile(path, other, 0o600) != nil {
				t.Error("not damaged", err)
			}
		}},
		"another file on the node by now": {held: old, patched: true, spoil: func(_ *blobs.Store, n *nodetest.Node) {
			n.Put(live, other)
		}},
		"gone from the node": {held: old, patched: true, spoil: func(_ *blobs.Store, n *nodetest.Node) {
			_ = n.Files.Remove(live)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d, store := depot(t, c.held)
			n, file := pushed(t, slow(), d, old, want)
			if c.spoil != nil {
				c.spoil(store, n)
			}
			result, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
			switch {
			case err != nil:
				t.Fatal(err)
			case result.Method != transfer.MethodWhole:
				t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodWhole)
			}
			arrived(t, n, want)
			if got := names(n.Calls()); strings.Contains(got, "Patch") != c.patched {
				t.Errorf("calls: %s", got)
			}
			if c.held != nil && bytes.Equal(c.held, old) && !c.patched && store.Has(hashOf(old)) {
				t.Error("the damaged base is still in the store")
			}
		})
	}
}

func TestThePreviousBinaryIsABaseToo(t *testing.T) {
	old := content(3<<20, 1)
	want := rebuilt(old)
	d, _ := depot(t, old)
	n, file := pushed(t, slow(), d, content(100, 9), want)
	n.Put(live+".swdt-old", old)
	file.Bases = append(file.Bases, transfer.Base{Path: live + ".swdt-old", SHA256: hashOf(old)})
	result, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Method != transfer.MethodDelta:
		t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodDelta)
	}
	arrived(t, n, want)
}

func TestUnrelatedFilesAreSentWhole(t *testing.T) {
	old, want := content(3<<20, 1), content(3<<20, 2)
	d, _ := depot(t, old)
	n, file := pushed(t, slow(), d, old, want)
	result, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Method != transfer.MethodWhole:
		t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodWhole)
	}
	arrived(t, n, want)
}

func TestACutPatchIsSentAgain(t *testing.T) {
	old := content(6<<20, 1)
	want := rebuilt(old)
	for i := 0; i < len(want); i += 100 { // a patch of some size
		want[i] ^= byte(i >> 3)
	}
	d, _ := depot(t, old)
	n, file := pushed(t, nodetest.Link{BytesPerSecond: 4 << 20, CutAfter: 40 << 10}, d, old, want)
	// The test sets the speed instead of measuring it: on a busy machine the link would look slow
	// enough for the smaller patch, which is a different one.
	link := node.Reading{RoundTrip: time.Millisecond, BytesPerSecond: 4 << 20, At: time.Now()}
	n.Speed.Note(link)
	_, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	var lost *node.LostError
	if !errors.As(err, &lost) {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, lost)
	}
	n.Settle()
	n.Shape(slow())
	if err := n.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Settle()
	if n.Get(destination) != nil || n.Get(transfer.Part(destination)) != nil {
		t.Error("half a file was left")
	}
	file.Absent = false
	link.At = time.Now()
	n.Speed.Note(link)
	result, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Method != transfer.MethodDelta:
		t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodDelta)
	}
	arrived(t, n, want)
	if d.Diffs() != 1 {
		t.Errorf("%d diffs", d.Diffs())
	}
}

func TestAFileThatChangesMeanwhileIsNamedByItsDifferenceToo(t *testing.T) {
	old := content(3<<20, 1)
	d, _ := depot(t, old)
	n, file := pushed(t, slow(), d, old, rebuilt(old))
	if err := os.WriteFile(file.Path, content(2<<20, 3), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	var changed *transfer.ChangedError
	if !errors.As(err, &changed) {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, changed)
	}
}

func TestAFullDiskWhilePatching(t *testing.T) {
	old := content(3<<20, 1)
	d, _ := depot(t, old)
	n, file := pushed(t, slow(), d, old, rebuilt(old))
	n.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if strings.HasSuffix(o.Target, ".part") && o.Kind == simulated.OpWrite {
			return simulated.DiskFull()
		}
		return simulated.Continue()
	})
	_, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{})
	switch {
	case err == nil:
		t.Fatal("no error, want one")
	case n.Get(transfer.Part(destination)) != nil:
		t.Fatalf("n.Get(transfer.Part(destination)) is %v, want nil", n.Get(transfer.Part(destination)))
	}
}

func TestTwentyNodesShareOneDiff(t *testing.T) {
	old := content(3<<20, 1)
	want := rebuilt(old)
	d, _ := depot(t, old)
	file := local(t, want)
	var all sync.WaitGroup
	for i := range 20 {
		n := nodetest.Start(t, fmt.Sprintf("w%d", i), simulated.Options{Preset: simulated.Minimal})
		n.Put(live, old)
		n.Speed.Note(node.Reading{RoundTrip: time.Millisecond, BytesPerSecond: 1e6, At: time.Now()})
		one := file
		one.Depot, one.Bases = d, []transfer.Base{{Path: live, SHA256: hashOf(old), Size: int64(len(old))}}
		all.Go(func() {
			result, err := transfer.Send(t.Context(), n.Node, one, destination, ui.Discard{})
			switch {
			case err != nil:
				t.Errorf("%s: %v", n.Name, err)
			case result.Method != transfer.MethodDelta:
				t.Errorf("%s: result.Method is %v, want %v", n.Name, result.Method, transfer.MethodDelta)
			}
			if !bytes.Equal(n.Get(destination), want) {
				t.Errorf("%s: another file arrived", n.Name)
			}
		})
	}
	all.Wait()
	if d.Diffs() != 1 {
		t.Errorf("%d diffs", d.Diffs())
	}
}

// Send uses the patch that was made ahead, and Prepare makes no patch that Send would not use.
func TestPrepare(t *testing.T) {
	old := content(3<<20, 1)
	file := local(t, rebuilt(old))
	file.Absent, file.Bases = true, []transfer.Base{{Path: live, SHA256: hashOf(old)}}
	strange := file
	strange.Bases = []transfer.Base{{Path: live, SHA256: hashOf([]byte("nobody here has it"))}}
	for name, c := range map[string]struct {
		file           transfer.File
		bytesPerSecond float64
		diffs          bool
	}{
		"a slow link": {file, 1e6, true}, "a fast link": {file, 1e12, false},
		"a link not known": {file, 0, false}, "a base not held": {strange, 1e6, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := depot(t, old)
			n := &node.Node{Name: "w", Files: farNode{}}
			n.Speed.Note(node.Reading{RoundTrip: fleetTrip, BytesPerSecond: c.bytesPerSecond, At: time.Now()})
			c.file.Depot = d
			if err := transfer.Prepare(t.Context(), n, c.file); err != nil || d.Diffs() > 0 != c.diffs {
				t.Fatalf("%d diffs, %v", d.Diffs(), err)
			}
			if !c.diffs {
				return
			}
			made := d.Diffs()
			result, err := transfer.Send(t.Context(), n, c.file, destination, ui.Discard{})
			switch {
			case err != nil:
				t.Error(err)
			case result.Method != transfer.MethodDelta:
				t.Errorf("result.Method is %v, want %v", result.Method, transfer.MethodDelta)
			case d.Diffs() != made:
				t.Errorf("d.Diffs() is %v, want %v", d.Diffs(), made)
			}
		})
	}
	d, _ := depot(t, old)
	file.Depot = d
	given, giveUp := context.WithCancel(t.Context())
	giveUp()
	n := &node.Node{Name: "w", Files: farNode{}}
	n.Speed.Note(node.Reading{RoundTrip: fleetTrip, BytesPerSecond: 1e6, At: time.Now()})
	if err := transfer.Prepare(given, n, file); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}
