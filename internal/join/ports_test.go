package join_test

import (
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/join"
)

// The join widens the dynamic ports of Windows, and the reset sets them as they were. A range that administrators have
// chosen stays, before the join and after it.
func TestDynamicPorts(t *testing.T) {
	type ports [2]int
	const usual, wide = 16384, 31536
	for what, c := range map[string]struct {
		before  *ports
		joined  ports
		changed *ports // after the join, by others
		reset   ports
	}{
		"Windows' own":        {nil, ports{34000, wide}, nil, ports{49152, usual}},
		"chosen before":       {&ports{40000, 20000}, ports{40000, 20000}, nil, ports{40000, 20000}},
		"chosen after a join": {nil, ports{34000, wide}, &ports{35000, 30000}, ports{35000, 30000}},
	} {
		subtest(t, what, func(t *testing.T) {
			l := newLab(t)
			if c.before != nil {
				l.Machine.SetDynamicPorts(c.before[0], c.before[1])
			}
			has := func(when string, want ports) {
				t.Helper()
				if first, count := l.Machine.DynamicPorts(); (ports{first, count}) != want {
					t.Errorf("%s: %d, %d; want %v", when, first, count, want)
				}
			}
			l.mustJoin()
			has("after the join", c.joined)
			again, err := l.join()
			nothing(t, again, err)
			if c.changed != nil {
				l.Machine.SetDynamicPorts(c.changed[0], c.changed[1])
				again, err := l.join()
				nothing(t, again, err)
			}
			if results, err := l.resetWith(resetAll(l)); err != nil {
				t.Fatalf("reset: %v\n%s", err, table(results))
			}
			has("after the reset", c.reset)
		})
	}
}

// A machine whose netsh reports no ports, as Wine's, joins without the change.
func TestAJoinWithoutDynamicPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Machine.SetDynamicPorts(-1, 0)
		results := l.mustJoin()
		for _, name := range changed(results) {
			if name == "dynamic ports" {
				t.Errorf("it changed the ports:\n%s", table(results))
			}
		}
		if _, err := l.resetWith(join.ResetOptions{}); err != nil {
			t.Error(err)
		}
	})
}
