package control_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/installation"
	"github.com/swdt-dev/swdt/internal/rollout/manage"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// order gives an order to the rollout r, and waits until the rollout is in the state.
func (l *lab) order(o manage.Order, state string) fleetv1.NodeRolloutStatus {
	l.t.Helper()
	report, err := manage.Change(l.t.Context(), l.admin, "r", o, false)
	if err != nil {
		l.t.Fatal(err)
	}
	if !report.Rollouts[0].Changed {
		l.t.Errorf("%s has changed nothing: %+v", o, report)
	}
	return l.settle(state)
}

// A person steers a rollout of four simulated machines: the canary step, the pause, the abort, the closed
// window and the rollback each keep or move the nodes as they should.
func TestOrdersOnARealAPIServer(t *testing.T) {
	l := newLab(t)
	first, second := fleettest.Kubelet("v1.37.2", ""), fleettest.Kubelet("v1.37.3", "")
	d := fleettest.NewFileServer(t, map[string][]byte{"first.exe": first, "second.exe": second})
	all := fleettest.Machines(t, 4)
	l.nodes("w0", "w1", "w2", "w3")
	cache := t.TempDir()
	for _, m := range all {
		l.program(m, cache)
	}
	l.controller()
	with := func(kubelet []byte) (count int) {
		for _, m := range all {
			if m.Runs(kubelet) {
				count++
			}
		}
		return count
	}
	spec := fleetv1.NodeRolloutSpec{Content: d.Content("first.exe"), Health: fleetv1.NodeHealth{Settle: "100ms"}}
	spec.Canary = []fleetv1.CanaryStep{{Nodes: intstr.FromInt32(1), Pause: "100h"}}
	l.rollout(spec)
	for _, want := range []struct {
		order manage.Order
		state string
	}{
		{"", rollout.StateWaiting},
		{manage.Pause, rollout.StatePaused},
		{manage.Abort, rollout.StateAborted},
		{manage.Resume, rollout.StateWaiting},
	} {
		var status fleetv1.NodeRolloutStatus
		if want.order == "" {
			status = l.settle(want.state)
		} else {
			status = l.order(want.order, want.state)
		}
		if status.Updated != 1 || with(first) != 1 {
			t.Errorf("%s %s: %d machines have the content: %+v", want.order, want.state, with(first), status)
		}
	}

	spec.Canary = nil
	l.rollout(spec)
	l.settle(rollout.StateComplete)

	spec.Content = d.Content("second.exe")
	in := func(d time.Duration) string { return time.Now().UTC().Add(d).Format("15:04") }
	spec.Window = &fleetv1.Window{Start: in(6 * time.Hour), End: in(7 * time.Hour)}
	l.rollout(spec)
	if status := l.settle(rollout.StateWaiting); status.Updated != 0 || with(first) != 4 {
		t.Errorf("outside of the window, %d machines have the first content: %+v", with(first), status)
	}
	spec.Window = &fleetv1.Window{Start: in(-6 * time.Hour), End: in(6 * time.Hour)}
	l.rollout(spec)
	if l.settle(rollout.StateComplete); with(second) != 4 {
		t.Errorf("in the window, %d machines got the content", with(second))
	}
	if l.order(manage.RollBack, rollout.StateRolledBack); with(first) != 4 {
		t.Errorf("after the rollback, %d machines have the first content", with(first))
	}
	l.looks(t)
}

// looks checks the report of the rollout that was taken back.
func (l *lab) looks(t *testing.T) {
	report, err := manage.Look(t.Context(), l.admin)
	if err != nil || len(report.Rollouts) != 1 || len(report.Rollouts[0].Touched) != 4 {
		t.Fatalf("the report is %+v: %v", report, err)
	}
	for i, n := range report.Rollouts[0].Touched {
		if n.Name != fmt.Sprintf("w%d", i) || n.Verdict != string(fleetv1.VerdictRolledBack) || n.Journal == "" {
			t.Errorf("node %d is %+v", i, n)
		}
	}
	var none *manage.NoRolloutError
	if _, err := manage.Change(t.Context(), l.admin, "other", manage.Pause, false); !errors.As(err, &none) {
		t.Errorf("an order to a rollout that does not exist: %v", err)
	}
}

// A removal leaves nothing, and a second one has nothing to do.
func TestRemovalOnARealAPIServer(t *testing.T) {
	l := newLab(t)
	remove := func(dry bool) map[plan.State]int {
		t.Helper()
		steps, err := installation.Remove(t.Context(), l.admin,
			installation.RemovalOptions{DryRun: dry, Wait: 2 * time.Minute}, ui.Discard{})
		if err != nil {
			t.Fatal(err)
		}
		count := map[plan.State]int{}
		for _, s := range steps {
			count[s.State]++
		}
		return count
	}
	planned := remove(true)
	if _, err := manage.Look(t.Context(), l.admin); err != nil {
		t.Fatalf("after a dry run: %v", err)
	}
	done, again := remove(false), remove(false)
	if planned[plan.OK] > 0 || done[plan.Changed] < 10 || done[plan.Changed] != again[plan.OK] {
		t.Errorf("planned %v, done %v, again %v", planned, done, again)
	}
	var missing *manage.NotInstalledError
	if _, err := manage.Look(t.Context(), l.admin); !errors.As(err, &missing) {
		t.Errorf("after the removal: %v", err)
	}
}
