package pktmon_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/cases"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// point identifies one operation of a capture, the same in every run of it.
type point struct {
	guardian   bool // else: the session's
	kind       simulated.Kind
	target     string
	occurrence int
}

func (p point) String() string {
	who := "session"
	if p.guardian {
		who = "guardian"
	}
	return fmt.Sprintf("%s %s %s #%d", who, p.kind, p.target, p.occurrence)
}

func pointOf(op simulated.Operation) point {
	return point{op.Service == layout.CaptureService, op.Kind, op.Target, op.Occurrence}
}

// ours leaves out operations of pktmon, and repetitions of indefinite number: most of the guardian's checks of the
// lock, most of a live capture's output.
func ours(op simulated.Operation) bool {
	most := 100
	switch {
	case op.Kind == simulated.OpLock, op.Kind == simulated.OpWrite && op.Target == captureplan.TextFile("a"):
		most = 2
	case op.Kind == simulated.OpRename: // retried if the session is reading the journal
		most = 5
	}
	return (op.Process == session || op.Service == layout.CaptureService) && op.Occurrence <= most
}

// interruption is an event at a point.
type interruption struct {
	name    string
	phase   simulated.Phase
	verdict simulated.Verdict
	lasting bool // for every later write, too
	// unattended means that the node must be clean before the next contact: the process that held the capture has
	// ended, its guardian has not.
	unattended bool
}

func interruptions() []interruption {
	both := simulated.Verdict{Kill: []string{session, layout.CaptureService}}
	list := []interruption{
		{name: "fails", phase: simulated.Before, verdict: simulated.Fail(fault.ErrPermission)},
		{name: "succeeds but reports a failure", phase: simulated.After, verdict: simulated.Fail(fault.ErrInUse)},
		{name: "disk full", phase: simulated.Before, verdict: simulated.DiskFull()},
		{name: "disk full from then on", phase: simulated.Before, verdict: simulated.DiskFull(), lasting: true},
	}
	for _, phase := range []simulated.Phase{simulated.Before, simulated.After} {
		list = append(list,
			interruption{name: "session killed " + string(phase), phase: phase, verdict: simulated.KillNamed(session),
				unattended: true},
			interruption{name: "guardian killed " + string(phase), phase: phase,
				verdict: simulated.KillNamed(layout.CaptureService)},
			interruption{name: "both killed " + string(phase), phase: phase, verdict: both},
			interruption{name: "power cut " + string(phase), phase: phase, verdict: simulated.PowerCut(),
				unattended: true})
	}
	return list
}

// TestEveryInterruption runs one capture, then again with each interruption at each of its operations, or with a
// sample of them. Afterwards nothing captures and none of swdt's filters is left; if the guardian lives, even
// without any contact.
func TestEveryInterruption(t *testing.T) {
	for name, plan := range map[string]captureplan.Plan{"to a file": plan("a"), "live": live("a"),
		"in rounds": inRounds("a")} {
		t.Run(name, func(t *testing.T) {
			for _, c := range cases.Of(t, casesAt(plan, pointsOf(t, plan)), 150) {
				t.Run(c.interruption.name+"/"+c.point.String(), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { interrupt(t, plan, c.point, c.interruption) })
				})
			}
		})
	}
}

// interruptedAt is an interruption at an operation.
type interruptedAt struct {
	interruption interruption
	point        point
}

// casesAt returns each interruption of a capture at each of the operations.
func casesAt(plan captureplan.Plan, points []point) (all []interruptedAt) {
	for _, i := range interruptions() {
		if (plan.Live || plan.Round > 0) && (i.phase == simulated.After || len(i.verdict.Kill) == 0 && !i.verdict.PowerCut) {
			continue // it differs only in the process that is killed
		}
		for _, p := range points {
			all = append(all, interruptedAt{i, p})
		}
	}
	return all
}

// pointsOf captures undisturbed and returns the operations.
func pointsOf(t *testing.T, plan captureplan.Plan) (points []point) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.ForgetOperations()
		outcome, err := run(n, plan)
		if err != nil || outcome.Result != captureplan.Captured {
			t.Fatalf("undisturbed: %+v, %v", outcome, err)
		}
		for _, op := range n.Operations() {
			if p := pointOf(op); ours(op) && !slices.Contains(points, p) {
				points = append(points, p)
			}
		}
		n.checkClean(t, "undisturbed")
	})
	if len(points) < 30 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	return points
}

// run is a whole session: begin, release once the node captures, follow.
func run(n *node, plan captureplan.Plan) (outcome captureplan.Outcome, err error) {
	m, p := n.session()
	defer p.Exit()
	hold, err := pktmon.Begin(p.Context(), m, plan)
	if err != nil {
		return outcome, err
	}
	err = pktmon.Follow(p.Context(), m, plan.ID, func(e captureplan.Event) error {
		if e.Outcome != nil {
			outcome = *e.Outcome
		}
		if e.State == captureplan.Capturing && (plan.Round == 0 || e.Closed > 0) {
			return hold.Release()
		}
		return nil
	})
	return outcome, errors.Join(err, hold.Release())
}

func interrupt(t *testing.T, plan captureplan.Plan, p point, i interruption) {
	n := newNode(t)
	n.ForgetOperations()
	var struck atomic.Bool
	n.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if !ours(op) || op.Phase != i.phase {
			return simulated.Continue()
		}
		if struck.Load() && i.lasting && (op.Kind == simulated.OpWrite || op.Kind == simulated.OpCreate) {
			return i.verdict
		}
		if pointOf(op) != p {
			return simulated.Continue()
		}
		struck.Store(true)
		return i.verdict
	})
	outcome, err := run(n, plan)
	if !struck.Load() {
		t.Fatal("the capture never came to this point")
	}
	t.Logf("the capture that was struck: %+v, %v", outcome, err)
	n.OnOperation(nil)
	if err := n.AwaitUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A session that was killed between registering its guardian and starting it has captured nothing: the next
	// contact, or boot, removes the registration.
	if i.unattended && n.guarded(t) && (i.verdict.PowerCut || n.atWork(t)) {
		n.checkClean(t, "without any contact")
	}
	// The next contact: a session begins, and then a user captures again.
	m, q := n.session()
	defer q.Exit()
	if err := pktmon.Heal(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	n.checkClean(t, "after the next contact")
	if outcome, err := run(n, next()); err != nil || outcome.Result != captureplan.Captured {
		t.Errorf("the next capture: %+v, %v", outcome, err)
	}
	n.checkClean(t, "after the next capture")
}

// next returns the plan of the capture after the interrupted one.
func next() captureplan.Plan { return plan("z") }
