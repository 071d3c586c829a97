package platform_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/platform"
)

// The SCM's documented rule, once more and in another way: each failure has a number, which is 1 after a pause of at
// least the reset period, and the action of that number, or the last one. A list that does not repeat ends with
// SC_ACTION_NONE.
func TestFailuresFollowTheDocumentedRule(t *testing.T) {
	const none = -1
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Map(rapid.IntRange(0, 90), func(n int) time.Duration { return time.Duration(n) * time.Second })
		r := platform.Recovery{
			Restarts:   rapid.SliceOfN(seconds, 0, 4).Draw(t, "restarts"),
			RepeatLast: rapid.Bool().Draw(t, "repeat"), Reset: seconds.Draw(t, "reset"),
		}
		actions := append([]time.Duration{}, r.Restarts...)
		if !r.RepeatLast || len(actions) == 0 {
			actions = append(actions, none)
		}
		var f platform.Failures
		at, number := time.Unix(0, 0), 0
		for _, pause := range rapid.SliceOf(seconds).Draw(t, "pauses") {
			at = at.Add(pause)
			if number++; r.Reset > 0 && pause >= r.Reset {
				number = 1
			}
			want := actions[min(number, len(actions))-1]
			if delay, restarts := f.Failed(r, at); restarts != (want != none) || restarts && delay != want {
				t.Fatalf("failure %d: restart %t after %s, want %s", number, restarts, delay, want)
			}
		}
	})
}

func TestAReportedStopCountsAsAFailureOnlyWithTheFlag(t *testing.T) {
	for flag, counts := range map[bool]bool{false: false, true: true} {
		r := platform.Recovery{OnErrorExit: flag}
		if got := r.CountsAsFailure(1); got != counts {
			t.Errorf("flag %t, exit code 1: %t", flag, got)
		}
		if r.CountsAsFailure(0) {
			t.Errorf("flag %t, exit code 0: a failure", flag)
		}
	}
}
