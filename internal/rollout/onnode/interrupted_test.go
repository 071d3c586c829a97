package onnode_test

import (
	"slices"
	"strings"
	"testing"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout/content"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Wherever the program on the node, its agent, the guardian or Windows ends, the next pod brings the order to
// an end, and the report is what the machine runs.
func TestAnOrderThatIsInterruptedAnywhere(t *testing.T) {
	good, bad := fleettest.Kubelet("v1.37.2", ""), fleettest.Kubelet("v1.37.3", simulated.CrashAtStart)
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": good, "bad.exe": bad})
	for _, file := range []string{"good.exe", "bad.exe"} {
		t.Run(file, func(t *testing.T) {
			first := newOrdered(t, d.Content(file))
			points := nodetest.OfTransactions().Points(first.Node, func() { first.carryOut() })
			if len(points) < 20 {
				t.Fatalf("only %d points: %v", len(points), points)
			}
			t.Logf("%d points", len(points))
			nodetest.OfTransactions().Each(t, points, 23, func(t *testing.T, strike nodetest.Strike) {
				o := newOrdered(t, d.Content(file))
				struck := o.Strike(strike)
				o.until(struck)
				if !struck.Load() {
					t.Fatal("it never came to this point")
				}
				o.Restore()
				status := o.carryOut()
				switch {
				case status.Journal == "":
					t.Errorf("the report has no journal: %+v", status)
				case status.Phase == fleetv1.PhaseDone && file == "good.exe" && o.Runs(good):
				case status.Phase == fleetv1.PhaseRolledBack && o.Runs(o.First):
				default:
					t.Errorf("%s %q; it runs the good kubelet: %t, its first: %t", status.Phase, status.Message,
						o.Runs(good), o.Runs(o.First))
				}
			})
		})
	}
}

// The next pod finishes an order to roll back that is interrupted anywhere: the node runs the previous kubelet, or
// the content's if the report is that it could not go back.
func TestARollbackThatIsInterruptedAnywhere(t *testing.T) {
	good := fleettest.Kubelet("v1.37.2", "")
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": good})
	updated := func(t *testing.T) *ordered {
		o := newOrdered(t, d.Content("good.exe"))
		if status := o.carryOut(); status.Phase != fleetv1.PhaseDone {
			t.Fatalf("the content: %+v", status)
		}
		o.orderBack()
		return o
	}
	first := updated(t)
	points := nodetest.OfTransactions().Points(first.Node, func() { first.carryOut() })
	if len(points) < 15 || !first.Runs(first.First) {
		t.Fatalf("%d points: %v; it runs its first kubelet: %t", len(points), points, first.Runs(first.First))
	}
	t.Logf("%d points", len(points))
	nodetest.OfTransactions().Each(t, points, 17, func(t *testing.T, strike nodetest.Strike) {
		o := updated(t)
		struck := o.Strike(strike)
		o.until(struck)
		if !struck.Load() {
			t.Fatal("it never came to this point")
		}
		o.Restore()
		status := o.carryOut()
		switch {
		case status.Journal == "":
			t.Errorf("the report has no journal: %+v", status)
		case status.Phase == fleetv1.PhaseDone && o.Runs(o.First):
		case status.Phase == fleetv1.PhaseFailed && o.Runs(good):
		default:
			t.Errorf("%s %q; it runs the content's kubelet: %t, its first: %t", status.Phase, status.Message,
				o.Runs(good), o.Runs(o.First))
		}
	})
}

// A setup that is interrupted anywhere is carried out by the next pod. If a step fails, the report says so, and
// the next order carries out the rest.
func TestASetupThatIsInterruptedAnywhere(t *testing.T) {
	wanted := fleetv1.Content{Setup: &fleetv1.Setup{
		Environment: map[string]string{"SWDT_TRIED": "yes"}, Path: []string{`C:\tried`},
		Hosts:    []fleetv1.HostsEntry{{Address: "192.0.2.1", Names: []string{"registry.example"}}},
		Firewall: []fleetv1.FirewallRule{{Name: "tried", Ports: "10250"}},
	}}
	strikes := nodetest.Strikes{Asker: func(op simulated.Operation) string {
		if nodetest.Session(op) && !strings.EqualFold(op.Target, layout.Root) {
			return "session"
		}
		return ""
	}}
	first := newOrdered(t, wanted)
	points := strikes.Points(first.Node, func() { first.carryOut() })
	if len(points) < 4 || !first.isSetUp(wanted) {
		t.Fatalf("%d points: %v; it is set up: %t", len(points), points, first.isSetUp(wanted))
	}
	t.Logf("%d points", len(points))
	strikes.Each(t, points, 1, func(t *testing.T, strike nodetest.Strike) {
		o := newOrdered(t, wanted)
		struck := o.Strike(strike)
		o.until(struck)
		if !struck.Load() {
			t.Fatal("it never came to this point")
		}
		o.Restore()
		status := o.carryOut()
		switch {
		case status.Phase == fleetv1.PhaseDone && o.isSetUp(wanted):
		case status.Phase == fleetv1.PhaseRolledBack && strings.HasSuffix(t.Name(), "/it_fails"):
		default:
			t.Errorf("%s %q; it is set up: %t", status.Phase, status.Message, o.isSetUp(wanted))
		}
	})
}

// isSetUp reports whether no step of the content's setup has anything to do.
func (o *ordered) isSetUp(c fleetv1.Content) bool {
	o.t.Helper()
	if err := o.Reconnect(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	doc, err := content.Document("w0", c)
	if err != nil {
		o.t.Fatal(err)
	}
	steps, err := plan.Run(o.t.Context(), setup.Steps(o.Node.Node, doc.Node.Spec.Setup, setup.Options{}),
		plan.Options{Machine: o.Node.Node, DryRun: true}, ui.Discard{})
	if err != nil || len(steps) != 4 {
		o.t.Fatalf("%d steps: %v", len(steps), err)
	}
	return !slices.ContainsFunc(steps, func(s plan.StepResult) bool { return s.State != plan.OK })
}
