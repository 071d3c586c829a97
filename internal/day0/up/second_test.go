package up_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
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
		"Windows": {"", 139},
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

// An up or a down that begins while another one works on the same cluster changes nothing, and the first one goes on to
// its end.
func TestASecondUpAtOnce(t *testing.T) {
	w := newWorld(t, inJoin)
	connect, tried := w.options.Connect, false
	w.options.Connect = func(ctx context.Context, doc config.Document, r ui.Reporter) (*node.Node, error) {
		if !tried {
			tried = true
			for name, run := range map[string]func(context.Context, config.ClusterDocument, []config.Document, up.Options) (up.Report, error){
				"up": up.Up, "down": up.Down,
			} {
				cluster, documents, err := config.LoadAll([]string{w.file()}, nil)
				if err != nil {
					return nil, err
				}
				o := w.options
				o.Reporter = func(string) ui.Reporter { return ui.Discard{} }
				o.Confirm = func(context.Context, []string) error { t.Errorf("%s asks", name); return nil }
				o.Connect = func(context.Context, config.Document, ui.Reporter) (*node.Node, error) {
					t.Errorf("%s contacts the node", name)
					return nil, errors.New("not now")
				}
				before := len(w.node.Machine.Operations())
				_, err = run(ctx, cluster, documents, o)
				if busy, ok := errors.AsType[*up.BusyError](err); !ok || busy.Cluster != "dev" {
					t.Errorf("%s: %v", name, err)
				}
				if after := len(w.node.Machine.Operations()); after != before {
					t.Errorf("%s has changed the node", name)
				}
			}
		}
		return connect(ctx, doc, r)
	}
	if first := w.up(); first.err != nil || !tried {
		t.Errorf("the first up: %v; others were tried: %t", first.err, tried)
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
