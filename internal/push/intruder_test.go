package push

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const evil = "evil"

// intruder is an ordinary user's process that tries to make the kubelet's service run a file of its
// own. It knows the binary that is pushed, and so every file name beside the destination.
type intruder struct {
	*simulated.Process
	binary []byte // the pushed one
	paths  []string
	mutex  sync.Mutex
	holds  []*simulated.Hold
}

func newIntruder(b *bench) *intruder {
	b.t.Helper()
	// The access list that Windows gives to a folder in the root of a drive.
	const open = "O:BAD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CI;DC;;;BU)" +
		"(A;OICIIO;FA;;;CO)"
	if err := b.node.Machine.Process("setup").Files.SetACL(`C:\k`, open); err != nil {
		b.t.Fatal(err)
	}
	binary, err := os.ReadFile(filepath.Join(b.folder, "kubelet.exe"))
	if err != nil {
		b.t.Fatal(err)
	}
	staged := layout.Staged(simulated.KubeletPath, sum(binary))
	return &intruder{
		Process: b.node.Machine.SpawnAs("user.exe", simulated.User), binary: binary,
		paths: []string{
			staged, transfer.Part(staged), simulated.KubeletPath,
			layout.Undo(simulated.KubeletPath), layout.Previous(simulated.KubeletPath),
		},
	}
}

// act plants files, opens handles to change them later, and tries to move existing files: all that
// an ordinary user may try at one moment. A planted file has exactly the content that is pushed, so
// that swdt might mistake it for the file that an earlier push sent.
func (i *intruder) act() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	files := i.Platform.Files
	for _, path := range i.paths {
		if f, err := files.Create(path, platform.CreateNew); err == nil {
			_, _ = f.Write(i.binary)
			_ = f.Close()
		}
		for _, rights := range []access.Rights{access.WriteData | access.WriteDAC | access.Delete, access.WriteData,
			access.WriteDAC, access.Delete} {
			if h, err := i.Hold(path, rights, false); err == nil {
				i.holds = append(i.holds, h)
			}
		}
	}
}

// strike writes through every handle after the push has ended.
func (i *intruder) strike() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for _, h := range i.holds {
		_ = h.SetACL("D:P(A;;FA;;;WD)")
		_ = h.Write(evil)
	}
	for _, path := range i.paths {
		if f, err := i.Platform.Files.Create(path, platform.CreateTruncate); err == nil {
			_, _ = io.WriteString(f, evil)
			_ = f.Close()
		}
	}
}

// safe checks that the kubelet is the old binary or the new one, and that no
// ordinary account can change it.
func (i *intruder) safe(t *testing.T, b *bench, old []byte, when string) {
	t.Helper()
	i.strike()
	got := b.node.Get(simulated.KubeletPath)
	if !bytes.Equal(got, old) && !bytes.Equal(got, i.binary) {
		t.Errorf("%s: the kubelet is neither the old nor the new binary (%d bytes, evil: %v)", when, len(got),
			bytes.Contains(got, []byte(evil)))
	}
	sddl, err := b.node.Machine.Process("look").Files.ACL(simulated.KubeletPath)
	if err != nil {
		t.Fatal(err)
	}
	list, err := access.Parse(sddl)
	if by := list.Changers(); err != nil || len(by) > 0 {
		t.Errorf("%s: %v can change the kubelet: %s, %v", when, by, sddl, err)
	}
}

// TestAnIntruderBesideTheDestination pushes a kubelet while an ordinary user acts once: before the
// push, or before one of its operations, in one run for each. Whichever files the user planted or
// holds handles to, the service runs the old binary or the new one, and the user cannot change it.
// The push also succeeds: it recovers from a single act.
func TestAnIntruderBesideTheDestination(t *testing.T) {
	var operations atomic.Int64 // of the longest push so far
	const atOnce = 16           // a push waits for seconds, in case the intruder's file is a scanner's
	free := make(chan struct{}, atOnce)
	for next := int64(0); next == 0 || next <= operations.Load(); {
		last := operations.Load()
		var pushes sync.WaitGroup
		for at := next; at <= last; at++ {
			free <- struct{}{}
			pushes.Go(func() {
				defer func() { <-free }()
				t.Run(fmt.Sprint("before operation ", at), func(t *testing.T) {
					seen := intrude(t, at)
					for longest := operations.Load(); seen > longest; longest = operations.Load() {
						operations.CompareAndSwap(longest, seen)
					}
				})
			})
		}
		pushes.Wait()
		next = last + 1
	}
	t.Logf("%d operations", operations.Load())
}

// intrude lets an intruder act before one operation of a push, or before the push. It returns the number of operations.
func intrude(t *testing.T, at int64) (operations int64) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	old, user := b.node.Get(simulated.KubeletPath), newIntruder(b)
	var count atomic.Int64
	b.node.Machine.Interleave(func(simulated.Operation) {
		if count.Add(1) == at {
			user.act()
		}
	})
	if at == 0 {
		user.act()
	}
	result, err := b.realPush(Options{Only: []string{"kubelet"}})
	b.node.Machine.Interleave(nil)
	if err != nil || result.Result != Changed {
		t.Errorf("the push: %+v, %v", result, err)
	}
	user.safe(t, b, old, "after the push")
	b.running("kubelet")
	return count.Load()
}

// An intruder that never stops may prevent the success of a push, but gains nothing else.
func TestAnIntruderThatNeverStops(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	old, user := b.node.Get(simulated.KubeletPath), newIntruder(b)
	b.node.Machine.Interleave(func(simulated.Operation) { user.act() })
	_, err := b.realPush(Options{Only: []string{"kubelet"}})
	b.node.Machine.Interleave(nil)
	t.Logf("the push: %v", err)
	user.strike()
	if err == nil {
		user.safe(t, b, old, "after the push")
	}
	for _, p := range b.node.Machine.ProcessNames() {
		if p == "kubelet.exe" && err != nil {
			user.safe(t, b, old, "a kubelet runs after a failed push")
		}
	}
	if _, err := b.realPush(Options{Only: []string{"kubelet"}}); err != nil {
		t.Errorf("once the intruder has gone: %v", err)
	}
	user.safe(t, b, old, "once the intruder has gone")
	b.running("kubelet")
}

// A previous binary that another account created is not the one that swdt kept.
func TestAPlantedPreviousBinaryIsNotRolledBackTo(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	old, user := b.node.Get(simulated.KubeletPath), newIntruder(b)
	user.act()
	w := b.realWork(Options{})
	_, err := w.finish(w.rollback(t.Context(), []string{"kubelet"}))
	switch {
	case err == nil:
		t.Error("no error, want one")
	case errors.As(err, new(*RolledBackError)):
		t.Error("errors.As(err, new(*RolledBackError)) is true, want false")
	}
	user.safe(t, b, old, "after the rollback")
	b.running("kubelet")
}
