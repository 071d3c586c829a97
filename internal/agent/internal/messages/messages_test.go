package messages_test

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// check checks that an enum has these words and no others.
func check[E interface {
	~int32
	protoreflect.Enum
}, W ~string](t *testing.T, words ...W) {
	t.Helper()
	var zero E
	if got := zero.Descriptor().Values().Len() - 1; got != len(words) {
		t.Errorf("%T has %d values, want %d", zero, got, len(words))
	}
	for _, w := range words {
		if value := word.Value[E](string(w)); value == 0 || word.Of(value) != string(w) {
			t.Errorf("%q becomes %v, whose word is %q", w, value, word.Of(value))
		}
	}
}

func TestEveryWordOfTheNodeHasItsValue(t *testing.T) {
	check[agentv1.ServiceState](t, platform.Stopped, platform.StartPending, platform.Running, platform.StopPending,
		platform.ContinuePending, platform.PausePending, platform.Paused)
	check[agentv1.StartType](t, platform.StartAuto, platform.StartManual, platform.StartDisabled)
	check[agentv1.FeatureState](t, platform.FeatureEnabled, platform.FeatureDisabled, platform.FeatureEnablePending,
		platform.FeatureDisablePending)
	check[agentv1.ReachOutcome](t, platform.Reached, platform.Refused, platform.TimedOut, platform.NoRoute,
		platform.NameNotFound, platform.ReachFailed)
	check[agentv1.SwapState](t, swap.Prepared, swap.Stopping, swap.Swapping, swap.Swapped, swap.Starting, swap.Checking,
		swap.Committing, swap.RollingBack, swap.Resumed, swap.GaveUp, swap.Done, swap.Waiting)
	check[agentv1.SwapResult](t, swap.Committed, swap.RolledBack, swap.Failed)
	check[agentv1.SwapAction](t, swap.ActionReplaced, swap.ActionCreated, swap.ActionRestarted, swap.ActionRolledBack,
		swap.ActionFailed)
	check[agentv1.ComputeKind](t, platform.HNSNetworks, platform.HNSEndpoints, platform.HNSNamespaces,
		platform.HNSLoadBalancers, "systems")
}
