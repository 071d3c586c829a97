package up_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
)

// mostRequests is the number of requests to the API server that a second up may make for one node.
const mostRequests = 34

// TestASecondUpAsksLittle counts what an up asks that has nothing to do: on a busy machine, its time is
// that of its calls to the node.
func TestASecondUpAsksLittle(t *testing.T) {
	for name, test := range map[string]struct {
		simulated string
		mostCalls int
	}{
		"Windows": {"", 138},
		"Wine":    {"wine", 112}, // has no access lists to read
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, inJoin)
			facts(func(f *platform.Facts) { f.Simulated = test.simulated })(w)
			if first := w.up(); first.err != nil {
				t.Fatal(first.err)
			}
			w.node.Calls()
			before := len(w.server.Requests())
			second := w.up()
			if second.err != nil {
				t.Fatal(second.err)
			}
			for _, change := range second.changes {
				if !strings.HasPrefix(change, "process.run ") { // such as containerd config default
					t.Errorf("it changed something: %s", change)
				}
			}
			if calls := w.node.Calls(); len(calls) > test.mostCalls || len(calls) == 0 {
				t.Errorf("it made %d calls to the node, want at most %d:\n%s", len(calls), test.mostCalls, counted(calls))
			}
			requests := len(slices.DeleteFunc(w.server.Requests()[before:], isOfNode))
			if requests > mostRequests || requests == 0 {
				t.Errorf("it made %d requests to the API server, want at most %d", requests, mostRequests)
			}
		})
	}
}

// counted returns how often each method was called, one method a line.
func counted(calls []string) string {
	count := map[string]int{}
	for _, call := range calls {
		count[call]++
	}
	var lines []string
	for _, call := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, strings.Repeat("*", count[call])+" "+call)
	}
	return strings.Join(lines, "\n")
}
