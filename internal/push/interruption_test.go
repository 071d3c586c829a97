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
	if err != nil || result.Result != Changed || b.node.Sessions() != 2 {
		t.Fatalf("%+v, %v, %d sessions", result, err, b.node.Sessions())
	}
	b.unlocked()
}

func TestACutConnectionDuringTheTransaction(t *testing.T) {
	unfinished := func(plan *agentv1.SwapPlan) *agentv1.Transaction {
		return &agentv1.Transaction{Id: "t1", Holder: plan.GetHolder(), State: "starting", Begun: timestamppb.Now()}
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
			if err != nil || result.Result != Changed || result.Components[1].Version.After != "v1.29.1" {
				t.Fatalf("%+v, %v", result, err)
			}
			if b.swap.resumed != c.resumed || b.node.Sessions() != 2 || strings.Join(b.swap.acknowledged, ",") != "t1" {
				t.Errorf("resumed %d times, %d sessions, acknowledged %v", b.swap.resumed, b.node.Sessions(),
					b.swap.acknowledged)
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
	if err == nil || !strings.Contains(err.Error(), "before the node began") ||
		!bytes.Equal(b.node.Get(containerdPath), old) {
		t.Fatalf("got %v", err)
	}
	b.whole(t, err, true)
}

func TestInterruptedDuringTheTransaction(t *testing.T) {
	b := twoPrograms(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted by a signal")
	b.swap.onRun = func() { cancel(stop) }
	result, err := b.push(ctx, Options{})
	if !is[*InterruptedError](err) || !errors.Is(err, stop) ||
		!strings.Contains(err.Error(), "finishes the transaction by itself") {
		t.Fatalf("got %v", err)
	}
	if result.Result != Failed || !strings.Contains(result.Components[0].Message, "still at work") {
		t.Errorf("%+v", result.Components[0])
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
		if !is[*InterruptedError](err) || !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
	})
}

func TestInterruptedWhileSending(t *testing.T) {
	b := twoPrograms(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.story.sent = func(int64) { cancel() }
	_, err := b.push(ctx, Options{})
	if !errors.Is(err, context.Canceled) || is[*InterruptedError](err) {
		t.Fatalf("got %v", err)
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
	if err != nil || len(result.Recovered) != 1 || result.Recovered[0].Result != "rolledBack" {
		t.Fatalf("%+v, %v", result, err)
	}
	if len(b.story.warnings) != 1 || !strings.Contains(b.story.warnings[0], "by bob") ||
		!strings.Contains(b.story.warnings[0], "kubelet crashed") {
		t.Errorf("warned %v", b.story.warnings)
	}
	if strings.Join(b.swap.acknowledged, ",") != "t0,t1" || b.swap.resumed != 0 {
		t.Errorf("acknowledged %v", b.swap.acknowledged)
	}
}

func TestAnUnfinishedTransactionIsFinishedFirst(t *testing.T) {
	b := twoPrograms(t)
	b.swap.transactions = []*agentv1.Transaction{{Id: "t0", Holder: "bob", State: "swapping", Begun: timestamppb.Now()}}
	result, err := b.push(t.Context(), Options{DryRun: true})
	if err != nil || b.swap.resumed != 0 || len(result.Recovered) != 1 || result.Recovered[0].State != "swapping" {
		t.Fatalf("dry run: %+v, %v", result, err)
	}
	result, err = b.push(t.Context(), Options{})
	if err != nil || result.Result != Changed || b.swap.resumed != 1 || result.Recovered[0].Result != "committed" {
		t.Fatalf("%+v, %v", result, err)
	}
	if strings.Join(b.swap.acknowledged, ",") != "t0,t1" {
		t.Errorf("acknowledged %v", b.swap.acknowledged)
	}
	b.unlocked()
}
