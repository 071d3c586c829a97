package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func TestACutConnectionWhileSendingIsMended(t *testing.T) {
	b := twoPrograms(t)
	cut := false
	b.story.sent = func(int64) {
		if !cut {
			cut = true
			b.node.Cut()
		}
	}
	result, err := b.push(t.Context(), Options{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Changed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
	case b.node.Sessions() != 2:
		t.Fatalf("b.node.Sessions() is %v, want 2", b.node.Sessions())
	}
	b.unlocked()
}

func TestACutConnectionDuringTheTransaction(t *testing.T) {
	unfinished := func(plan *agentv1.SwapPlan) *agentv1.Transaction {
		return &agentv1.Transaction{Id: "t1", Holder: plan.GetHolder(),
			State: agentv1.SwapState_SWAP_STATE_STARTING, Begun: timestamppb.Now()}
	}
	for name, c := range map[string]struct {
		cutAfter int
		then     func(*agentv1.SwapPlan) *agentv1.Transaction
		resumed  int
	}{
		"finished, id known":             {2, nil, 0},
		"finished before the first word": {1, nil, 0},
		"in flight, id known":            {3, unfinished, 1},
		"in flight, id unknown":          {1, unfinished, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := twoPrograms(t)
			b.swap.cutAfter, b.swap.then = c.cutAfter, c.then
			result, err := b.push(t.Context(), Options{})
			switch {
			case err != nil:
				t.Fatal(err)
			case result.Result != Changed:
				t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
			case result.Components[1].Version.After != "v1.29.1":
				t.Fatalf("result.Components[1].Version.After is %q, want %q", result.Components[1].Version.After,
					"v1.29.1")
			}
			switch {
			case b.swap.resumed != c.resumed:
				t.Errorf("b.swap.resumed is %v, want %v", b.swap.resumed, c.resumed)
			case b.node.Sessions() != 2:
				t.Errorf("b.node.Sessions() is %v, want 2", b.node.Sessions())
			case strings.Join(b.swap.acknowledged, ",") != "t1":
				t.Errorf(`strings.Join(b.swap.acknowledged, ",") is %q, want %q`,
					strings.Join(b.swap.acknowledged, ","), "t1")
			}
			b.unlocked()
		})
	}
}

func TestACutConnectionBeforeTheTransactionBegan(t *testing.T) {
	b := twoPrograms(t)
	old := b.node.Get(containerdPath)
	b.swap.outcome = &agentv1.SwapOutcome{} // nothing is carried out
	b.swap.cutAfter = 1
	b.swap.then = func(*agentv1.SwapPlan) *agentv1.Transaction { return nil }
	_, err := b.push(t.Context(), Options{})
	switch {
	case err == nil:
		t.Fatal("no error, want one")
	case !strings.Contains(err.Error(), "before the node began"):
		t.Fatalf("err.Error() lacks %q:\n%s", "before the node began", err.Error())
	case !bytes.Equal(b.node.Get(containerdPath), old):
		t.Fatal("b.node.Get(containerdPath) differs from old")
	}
	b.whole(t, err, true)
}

func TestInterruptedDuringTheTransaction(t *testing.T) {
	b := twoPrograms(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted by a signal")
	b.swap.onRun = func() { cancel(stop) }
	result, err := b.push(ctx, Options{})
	switch {
	case !is[*InterruptedError](err):
		t.Fatalf("the error is %v, want a *InterruptedError", err)
	case !errors.Is(err, stop):
		t.Fatalf("the error is %v, want %v", err, stop)
	case !strings.Contains(err.Error(), "finishes the transaction by itself"):
		t.Fatalf("err.Error() lacks %q:\n%s", "finishes the transaction by itself", err.Error())
	}
	switch {
	case result.Result != Failed:
		t.Errorf("result.Result is %v, want %v", result.Result, Failed)
	case !strings.Contains(result.Components[0].Message, "still at work"):
		t.Errorf("result.Components[0].Message lacks %q:\n%s", "still at work", result.Components[0].Message)
	}
	if len(b.swap.acknowledged) != 0 {
		t.Error("an outcome nobody was told was acknowledged")
	}
	b.unlocked()
}

// The node's clock may be ahead: its reply that a call's deadline has passed may arrive before the
// deadline on the local clock.
func TestATimeoutDuringTheTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("not done within --timeout")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, stop)
		defer cancel()
		time.Sleep(10*time.Second - time.Millisecond) // of the bubble's clock
		if !cutShort(ctx, fmt.Errorf("replace: %w", context.DeadlineExceeded)) || context.Cause(ctx) != stop {
			t.Errorf("cause %v", context.Cause(ctx))
		}
	})
	// A deadline other than that of the whole command is an ordinary failure.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if cutShort(ctx, context.DeadlineExceeded) {
		t.Error("cut short, an hour before the deadline")
	}
}

func TestTheConnectionIsLostForGoodDuringTheTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := &node.LostError{Node: "w1"}
		w := &work{reporter: ui.Discard{}, reconnect: func(context.Context) error { return gone }}
		_, err := (&following{work: w, begun: true}).rejoin(t.Context(), gone)
		switch {
		case !is[*InterruptedError](err):
			t.Error("is[*InterruptedError](err) is false, want true")
		case !errors.Is(err, gone):
			t.Errorf("the error is %v, want %v", err, gone)
		}
	})
}

// While nothing was changed, swdt tries for a while to reach a node again, unless that is hopeless.
func TestANodeThatComesBackWhileSending(t *testing.T) {
	away := &node.UnreachableError{Node: "w1", Err: errors.New("connection refused")}
	hopeless := &node.UnreachableError{Node: "w1", Err: &node.NotAdministratorError{Attempt: "install the agent"}}
	for name, test := range map[string]struct {
		answers []error // the last one repeats
		tries   int     // 0: any number above one
		want    error
	}{
		"at once":        {[]error{nil}, 1, nil},
		"later":          {[]error{away, away, nil}, 3, nil},
		"never":          {[]error{away}, 0, away},
		"it is hopeless": {[]error{away, hopeless}, 2, hopeless},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				w := &work{reporter: ui.Discard{}, reconnect: func(context.Context) error {
					tries++
					return test.answers[min(tries, len(test.answers))-1]
				}}
				err := w.connectAgain(t.Context())
				if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
					t.Errorf("the error is %v, want %v", err, test.want)
				}
				if test.tries != tries && (test.tries > 0 || tries < 2) {
					t.Errorf("%d tries, want %d", tries, test.tries)
				}
			})
		})
	}
}

func TestInterruptedWhileSending(t *testing.T) {
	b := twoPrograms(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.story.sent = func(int64) { cancel() }
	_, err := b.push(ctx, Options{})
	switch {
	case !errors.Is(err, context.Canceled):
		t.Fatalf("the error is %v, want %v", err, context.Canceled)
	case is[*InterruptedError](err):
		t.Fatal("is[*InterruptedError](err) is true, want false")
	}
	b.whole(t, err, false)
}

func TestAnEarlierOutcomeIsTold(t *testing.T) {
	b := twoPrograms(t)
	b.swap.transactions = []*agentv1.Transaction{{
		Id: "t0", Holder: "bob", Begun: timestamppb.Now(),
		Outcome: &agentv1.SwapOutcome{Result: agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK, Message: "kubelet crashed"},
	}}
	result, err := b.push(t.Context(), Options{})
	switch {
	case err != nil:
		t.Fatal(err)
	case len(result.Recovered) != 1:
		t.Fatalf("result.Recovered has %d elements, want 1: %v", len(result.Recovered), result.Recovered)
	case result.Recovered[0].Result != "rolledBack":
		t.Fatalf("result.Recovered[0].Result is %q, want %q", result.Recovered[0].Result, "rolledBack")
	}
	switch {
	case len(b.story.warnings) != 1:
		t.Errorf("b.story.warnings has %d elements, want 1: %v", len(b.story.warnings), b.story.warnings)
	case !strings.Contains(b.story.warnings[0], "by bob"):
		t.Errorf("b.story.warnings[0] lacks %q:\n%s", "by bob", b.story.warnings[0])
	case !strings.Contains(b.story.warnings[0], "kubelet crashed"):
		t.Errorf("b.story.warnings[0] lacks %q:\n%s", "kubelet crashed", b.story.warnings[0])
	}
	if strings.Join(b.swap.acknowledged, ",") != "t0,t1" || b.swap.resumed != 0 {
		t.Errorf("acknowledged %v", b.swap.acknowledged)
	}
}

func TestAnUnfinishedTransactionIsFinishedFirst(t *testing.T) {
	b := twoPrograms(t)
	b.swap.transactions = []*agentv1.Transaction{{Id: "t0", Holder: "bob",
		State: agentv1.SwapState_SWAP_STATE_SWAPPING, Begun: timestamppb.Now()}}
	result, err := b.push(t.Context(), Options{DryRun: true})
	switch {
	case err != nil:
		t.Fatalf("dry run: %v", err)
	case b.swap.resumed != 0:
		t.Fatalf("dry run: b.swap.resumed is %v, want 0", b.swap.resumed)
	case len(result.Recovered) != 1:
		t.Fatalf("dry run: result.Recovered has %d elements, want 1: %v", len(result.Recovered), result.Recovered)
	case result.Recovered[0].State != "swapping":
		t.Fatalf("dry run: result.Recovered[0].State is %q, want %q", result.Recovered[0].State, "swapping")
	}
	result, err = b.push(t.Context(), Options{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Changed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
	case b.swap.resumed != 1:
		t.Fatalf("b.swap.resumed is %v, want 1", b.swap.resumed)
	case result.Recovered[0].Result != "committed":
		t.Fatalf("result.Recovered[0].Result is %q, want %q", result.Recovered[0].Result, "committed")
	}
	if strings.Join(b.swap.acknowledged, ",") != "t0,t1" {
		t.Errorf("acknowledged %v", b.swap.acknowledged)
	}
	b.unlocked()
}
