package events

import (
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
)

// manyIDs returns a node whose System channel has an event with each of the IDs 1 to 40, twice, and its channel.
func manyIDs(t *testing.T) (*nodetest.Node, Channel) {
	t.Helper()
	n := nodetest.Start(t, "w1", simulated.Options{Preset: simulated.Minimal})
	for i := range 80 {
		n.Machine.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "test", ID: i%40 + 1, Level: 2})
	}
	reader, err := Open(t.Context(), n.Node.Processes)
	if err != nil {
		t.Fatal(err)
	}
	channels, err := reader.Channels([]string{"System"})
	if err != nil {
		t.Fatal(err)
	}
	return n, channels[0]
}

// Windows refuses a query of more than 20 expressions, as elastic/beats#1491 met with 24 IDs.
func TestMoreIDsThanAQueryMayHave(t *testing.T) {
	_, channel := manyIDs(t)
	for name, q := range map[string]Query{
		"all":           {Last: -1},
		"the last":      {Last: 5},
		"all at levels": {Last: -1, Level: logline.Info, Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)},
		"the wanted":    {Last: 7, Wants: func(e Event) bool { return e.ID%2 == 0 }},
	} {
		for id := 1; id < 40; id++ {
			q.IDs = append(q.IDs, id)
		}
		var got []Event
		err := channel.Read(t.Context(), q, func(batch []Event, _ bool) error {
			got = append(got, batch...)
			return nil
		})
		want := 78
		if q.Last > 0 {
			want = q.Last
		}
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case len(got) != want:
			t.Errorf("%s: %d events, want %d", name, len(got), want)
		case !slices.IsSortedFunc(got, func(a, b Event) int { return int(a.Record) - int(b.Record) }):
			t.Errorf("%s: the events are not in the order in which they were logged", name)
		case want < 78 && got[len(got)-1].ID < 38:
			t.Errorf("%s: the last event has the ID %d", name, got[len(got)-1].ID)
		}
	}
}

// An event that is logged between two queries for one list is found the next time.
func TestAnEventBetweenTwoQueries(t *testing.T) {
	n, channel := manyIDs(t)
	q := Query{Last: -1}
	for id := 1; id < 40; id++ {
		q.IDs = append(q.IDs, id)
	}
	answered := 0
	n.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if o.Kind == simulated.OpProcessRun && o.Phase == simulated.After {
			if answered++; answered == 2 { // the first asks for the newest record
				n.Machine.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "test", ID: 1})
				n.Machine.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "test", ID: 39})
			}
		}
		return simulated.Continue()
	})
	highest, err := channel.ask(t.Context(), q, 0, func(Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	n.Machine.OnOperation(nil)
	var got []int
	if _, err := channel.ask(t.Context(), q, highest, func(e Event) error {
		got = append(got, e.ID)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []int{1, 39}) {
		t.Errorf("the events after record %d have the IDs %v, want [1 39]", highest, got)
	}
}

// IDs that no event of a group can have select nothing.
func TestIDsOutsideOfAGroup(t *testing.T) {
	_, channel := manyIDs(t)
	channel.chosen.ids = []int{7000, 7001}
	if err := channel.Read(t.Context(), Query{Last: -1, IDs: []int{1, 2}}, func(batch []Event, _ bool) error {
		if len(batch) > 0 {
			t.Errorf("events: %+v", batch)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
