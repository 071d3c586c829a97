package control_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wait"
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
	o.write("w0", fleetv1.NodeStateSpec{Rollout: "r", Hash: rollout.HashOf(content), Action: fleetv1.ActionApply,
		Released: true, Content: content})
	return o
}

// until runs the program in a pod, which ends when the order has, or when it is struck.
func (o *ordered) until(struck *atomic.Bool) fleetv1.NodeStateStatus {
	o.t.Helper()
	ctx, end := context.WithCancel(o.t.Context())
	var pod sync.WaitGroup
	pod.Go(func() { _ = o.machine.run(ctx, o.clients["w0"], o.cache) }) // it returns the end of ctx
	err := wait.Condition{Name: "the end of the order", Interval: time.Millisecond, Limit: 2 * time.Minute,
		Look: func(context.Context) error {
			phase := o.state("w0").Status.Phase
			if struck.Load() || phase != "" && phase != fleetv1.PhaseWorking {
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
