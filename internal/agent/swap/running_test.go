package swap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const shimExe = `C:\k\shim.exe`

type shimNode struct {
	*node
	shims atomic.Int32 // that were started
}

// newShimNode returns a machine with a program that no service runs and that
// runs until its process is killed, as a container's shim does.
func newShimNode(t *testing.T) *shimNode {
	n := &shimNode{node: newNode(t)}
	n.Register(simulated.Program{
		Name:  "shim",
		Match: func(image *simulated.Image) bool { return image.Name == "shim" },
		Main: func(ctx context.Context, _ *simulated.Process) int {
			n.shims.Add(1)
			<-ctx.Done()
			return 0
		},
	})
	n.place(t, shimExe, shim(0))
	return n
}

func shim(version int) []byte { return binary("shim", fmt.Sprintf("v0.0.%d", version), "") }

// startShim runs the present file at the destination until the test ends.
func (n *shimNode) startShim(t *testing.T) {
	before := n.shims.Load()
	runner := n.Spawn("containerd.exe")
	go runner.Platform.Processes.Run(t.Context(), platform.Command{Path: shimExe})
	eventually(t, "the shim runs", func() bool { return n.shims.Load() > before })
}

func (n *shimNode) endShims() { n.Kill("shim.exe") }

func (n *shimNode) stageShim(t *testing.T, content []byte) swap.Component {
	c := n.stage(t, "shim", shimExe, content)
	c.Service = ""
	return c
}

// beside returns the names of the files that start with the destination's.
func (n *shimNode) beside(t *testing.T, destination string) (names []string) {
	t.Helper()
	folder := destination[:strings.LastIndex(destination, `\`)]
	entries, err := n.Process("look").Files.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if rest, ok := strings.CutPrefix(entry.Path, destination+".swdt-"); ok {
			names = append(names, rest)
		}
	}
	return names
}

// Every version has a running process, so that none of the files can be
// removed; each push is still committed and can still be rolled back.
func TestPushesOfAProgramWhoseOldVersionsAllRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newShimNode(t)
		const pushes = 12
		for version := 1; version <= pushes; version++ {
			n.startShim(t)
			outcome, _ := n.push(t, n.stageShim(t, shim(version)))
			if outcome.Result != swap.Committed || outcome.Components[0].Message != "" {
				t.Fatalf("push %d: %+v", version, outcome)
			}
			equalBytes(t, fmt.Sprintf("the shim after push %d", version), n.read(t, shimExe), shim(version))
			equalBytes(t, fmt.Sprintf("the previous one after push %d", version), n.read(t, layout.Previous(shimExe)),
				shim(version-1))
		}

		n.endShims()
		outcome, _ := n.push(t, n.stageShim(t, shim(pushes+1)))
		if outcome.Result != swap.Committed {
			t.Fatalf("the last push: %+v", outcome)
		}
		if left := n.beside(t, shimExe); len(left) != 1 || left[0] != "old" {
			t.Errorf("once no old version runs, the next push clears them; left: %v", left)
		}
	})
}

// An older swdt may have left an undo file with a program that still runs.
func TestAnUndoThatStillRunsIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newShimNode(t)
		n.startShim(t)
		if err := n.Process("older").Files.Rename(shimExe, layout.Undo(shimExe), false); err != nil {
			t.Fatal(err)
		}
		n.place(t, shimExe, shim(1))

		outcome, _ := n.push(t, n.stageShim(t, shim(2)))

		if outcome.Result != swap.Committed {
			t.Fatalf("outcome: %+v", outcome)
		}
		equalBytes(t, "the previous shim", n.read(t, layout.Previous(shimExe)), shim(1))
	})
}

// If the previous binary can neither be replaced nor moved, the undo file must
// not obstruct the next push.
func TestAnUndoThatCannotBeKeptIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newShimNode(t)
		n.startShim(t)
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpRename && op.Phase == simulated.Before && op.From == layout.Undo(shimExe) &&
				op.Target == layout.Previous(shimExe) {
				return simulated.Fail(fault.ErrPermission)
			}
			return simulated.Continue()
		})
		outcome, _ := n.push(t, n.stageShim(t, shim(1)))
		if outcome.Result != swap.Committed || !strings.Contains(outcome.Components[0].Message,
			"not kept for a rollback") {
			t.Fatalf("outcome: %+v", outcome)
		}
		n.OnOperation(nil)
		if _, err := n.Process("look").Files.Stat(layout.Undo(shimExe)); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("the undo file is still in the way: %v", err)
		}
		if outcome, _ := n.push(t, n.stageShim(t, shim(2))); outcome.Result != swap.Committed {
			t.Fatalf("the next push: %+v", outcome)
		}
	})
}

// The containerd that is pushed together with a bad kubelet starts shims before
// the kubelet fails: the undo must not wait for their end.
func TestANewBinaryThatStillRunsDoesNotHoldUpTheUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newShimNode(t)
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpServiceStart && strings.EqualFold(op.Target, "kubelet") &&
				op.Phase == simulated.Before && op.Occurrence == 1 {
				runner := n.Spawn("containerd.exe")
				go runner.Platform.Processes.Run(context.Background(), platform.Command{Path: shimExe})
			}
			return simulated.Continue()
		})

		outcome, events := n.push(t, n.stageShim(t, shim(1)), n.stageKubelet(t, "v1.30.0", "exit-after=300ms"))

		if outcome.Result != swap.RolledBack {
			t.Fatalf("outcome: %+v", outcome)
		}
		for _, e := range events {
			if e.State == swap.GaveUp {
				t.Errorf("it gave up on the way: %+v", e)
			}
		}
		equalBytes(t, "the shim", n.read(t, shimExe), shim(0))
		n.endShims()
	})
}
