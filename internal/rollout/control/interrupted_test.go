package control_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/content"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// ordered is a machine with a released order for it.
type ordered struct {
	*machine
	*store
	t     *testing.T
	cache string
}

func newOrdered(t *testing.T, content fleetv1.Content) *ordered {
	scheme := runtime.NewScheme()
	if err := fleetv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := &ordered{machine: newMachine(t, "w0"), t: t, cache: t.TempDir()}
	o.store = &store{t: t, clients: map[string]*fake.FakeDynamicClient{"w0": fake.NewSimpleDynamicClient(scheme)}}
	o.order(content)
	return o
}

// order orders the content.
func (o *ordered) order(content fleetv1.Content) {
	o.write("w0", fleetv1.NodeStateSpec{Rollout: "r", Hash: rollout.HashOf(content), Action: fleetv1.ActionApply,
		Released: true, Content: content})
}

// until runs the program in a pod, which ends when the order has and its journal is gone, or when it is struck.
func (o *ordered) until(struck *atomic.Bool) fleetv1.NodeStateStatus {
	o.t.Helper()
	ctx, end := context.WithCancel(o.t.Context())
	var pod sync.WaitGroup
	pod.Go(func() { _ = o.machine.run(ctx, o.clients["w0"], o.cache) }) // it returns the end of ctx
	err := wait.Condition{Name: "the end of the order", Interval: time.Millisecond, Limit: 2 * time.Minute,
		Look: func(context.Context) error {
			s := o.state("w0")
			ended := s.Status.Phase != "" && s.Status.Phase != fleetv1.PhaseWorking &&
				s.Status.Hash == s.Spec.Hash && s.Status.Action == s.Spec.Action && (s.Status.Phase != fleetv1.PhaseFetched || !s.Spec.Released)
			if struck.Load() || ended && o.forgotten() {
				return nil
			}
			return errNotYet
		}}.Wait(o.t.Context())
	end()
	pod.Wait()
	if err != nil {
		o.t.Fatalf("%v: %+v", err, o.state("w0").Status)
	}
	return o.state("w0").Status
}

// forgotten reports whether the machine has no journal of a transaction.
func (o *ordered) forgotten() bool {
	look := o.Machine.Spawn("look")
	defer look.Exit()
	left, err := look.Platform.Files.List(layout.Journals)
	return err == nil && len(left) == 0 || errors.Is(err, fault.ErrNotExist)
}

// Wherever the program on the node, its agent, the guardian or Windows ends, the next pod brings the order to
// an end, and the report is what the machine runs.
func TestAnOrderThatIsInterruptedAnywhere(t *testing.T) {
	good, bad := kubelet("v1.37.2", ""), kubelet("v1.37.3", simulated.CrashAtStart)
	d := newDepot(t, map[string][]byte{"good.exe": good, "bad.exe": bad})
	for _, file := range []string{"good.exe", "bad.exe"} {
		t.Run(file, func(t *testing.T) {
			var never atomic.Bool
			first := newOrdered(t, d.content(file))
			points := nodetest.OfTransactions().Points(first.Node, func() { first.until(&never) })
			if len(points) < 20 {
				t.Fatalf("only %d points: %v", len(points), points)
			}
			t.Logf("%d points", len(points))
			nodetest.OfTransactions().Each(t, points, 23, func(t *testing.T, strike nodetest.Strike) {
				o := newOrdered(t, d.content(file))
				struck := o.Strike(strike)
				o.until(struck)
				if !struck.Load() {
					t.Fatal("it never came to this point")
				}
				o.Restore()
				status := o.until(&never)
				switch {
				case status.Journal == "":
					t.Errorf("the report has no journal: %+v", status)
				case status.Phase == fleetv1.PhaseDone && file == "good.exe" && o.runs(good):
				case status.Phase == fleetv1.PhaseRolledBack && o.runs(o.before):
				default:
					t.Errorf("%s %q; it runs the good kubelet: %t, its first: %t", status.Phase, status.Message,
						o.runs(good), o.runs(o.before))
				}
			})
		})
	}
}

// orderBack orders the binaries before the content back.
func (o *ordered) orderBack() {
	spec := o.state("w0").Spec
	spec.Action = fleetv1.ActionRollBack
	o.write("w0", spec)
}

// The next pod finishes an order to roll back that is interrupted anywhere: the node runs the previous kubelet, or
// the content's if the report is that it could not go back.
func TestARollbackThatIsInterruptedAnywhere(t *testing.T) {
	good := kubelet("v1.37.2", "")
	d := newDepot(t, map[string][]byte{"good.exe": good})
	updated := func(t *testing.T) *ordered {
		var never atomic.Bool
		o := newOrdered(t, d.content("good.exe"))
		if status := o.until(&never); status.Phase != fleetv1.PhaseDone {
			t.Fatalf("the content: %+v", status)
		}
		o.orderBack()
		return o
	}
	var never atomic.Bool
	first := updated(t)
	points := nodetest.OfTransactions().Points(first.Node, func() { first.until(&never) })
	if len(points) < 15 || !first.runs(first.before) {
		t.Fatalf("%d points: %v; it runs its first kubelet: %t", len(points), points, first.runs(first.before))
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
		status := o.until(&never)
		switch {
		case status.Journal == "":
			t.Errorf("the report has no journal: %+v", status)
		case status.Phase == fleetv1.PhaseDone && o.runs(o.before):
		case status.Phase == fleetv1.PhaseFailed && o.runs(good):
		default:
			t.Errorf("%s %q; it runs the content's kubelet: %t, its first: %t", status.Phase, status.Message,
				o.runs(good), o.runs(o.before))
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
	var never atomic.Bool
	first := newOrdered(t, wanted)
	points := strikes.Points(first.Node, func() { first.until(&never) })
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
		status := o.until(&never)
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
	steps, err := plan.Run(o.t.Context(), o.machine.Node.Node, setup.Steps(doc.Node.Spec.Setup, setup.Options{}),
		plan.Options{DryRun: true}, ui.Discard{})
	if err != nil || len(steps) != 4 {
		o.t.Fatalf("%d steps: %v", len(steps), err)
	}
	return !slices.ContainsFunc(steps, func(s plan.StepResult) bool { return s.State != plan.OK })
}
