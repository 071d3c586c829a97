package swap_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// A restart of Windows ends kubelet and containerd before the guardian, which was registered last. This is no failure of
// the new binaries: the push goes on after the boot.
func TestARestartDuringAPushIsNoFailure(t *testing.T) {
	for _, at := range []swap.Event{
		{State: swap.Starting, Component: "containerd"},
		{State: swap.Checking, Component: "containerd"},
		{State: swap.Checking, Component: "kubelet"}, // it hears of the restart first
	} {
		t.Run(fmt.Sprint(at.State, " ", at.Component), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { restartAt(t, at) })
		})
	}
}

func restartAt(t *testing.T, at swap.Event) {
	r := newRun(t, "")
	containerd, kubelet := &r.plan.Components[0], &r.plan.Components[1]
	containerd.Settle, kubelet.Settle = 10*time.Second, 20*time.Second
	m, p := r.session()
	id, err := swap.Begin(t.Context(), m, r.plan)
	if err != nil {
		t.Fatal(err)
	}
	restart := sync.OnceFunc(func() { go r.Reboot() })
	_, err = swap.Follow(p.Context(), m, id, func(e swap.Event) {
		if e.State == at.State && e.Component == at.Component {
			restart()
		}
	})
	if err == nil {
		t.Fatal("the session did not end with the node")
	}
	if err := r.AwaitUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.contact(t)
	if results := r.results(); !slices.Equal(results, []swap.Result{swap.Committed}) {
		t.Errorf("the push ended with %v (%+v), want %s", results, r.told, swap.Committed)
	}
	r.check(t, "after the restart")
}

// results returns the results of all transactions whose outcomes were read.
func (r *run) results() (results []swap.Result) {
	for _, outcome := range r.told {
		results = append(results, outcome.Result)
	}
	return results
}

// A restart of Windows during an undo, while no service can start any more, is no reason to leave one stopped.
func TestARestartDuringAnUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, "crash-at-start")
		restart := sync.OnceFunc(func() { go r.Reboot() })
		r.OnOperation(func(op simulated.Operation) simulated.Verdict {
			old := op.Kind == simulated.OpRename && op.Target == kubeletExe && op.From == layout.Undo(kubeletExe)
			if old && op.Phase == simulated.After {
				restart()
			}
			return simulated.Continue()
		})
		r.transact()
		r.OnOperation(nil)
		if err := r.AwaitUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.contact(t)
		if results := r.results(); !slices.Equal(results, []swap.Result{swap.RolledBack}) {
			t.Errorf("the push ended with %v (%+v), want %s", results, r.told, swap.RolledBack)
		}
		if message := r.told[0].Message; strings.Contains(message, "does not start") {
			t.Errorf("the outcome names a service that does not run: %s", message)
		}
		r.check(t, "after the restart")
		if s := r.service(t, "kubelet"); s.State != platform.Running {
			t.Errorf("kubelet is %s", s.State)
		}
	})
}
