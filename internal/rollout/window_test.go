package rollout_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
)

// In the window, nodes are claimed; before it, the status says when it opens, and the decision is repeated then.
func TestTheWindow(t *testing.T) {
	day := func(days ...fleetv1.Day) []fleetv1.Day { return days }
	for name, test := range map[string]struct {
		window fleetv1.Window
		now    string // 24 November 2026 is a Tuesday
		opens  string // "": it is open
		again  time.Duration
	}{
		"inside":           {fleetv1.Window{Start: "11:00", End: "13:00"}, "2026-11-24T12:00:00Z", "", time.Hour},
		"at its beginning": {fleetv1.Window{Start: "12:00", End: "13:00"}, "2026-11-24T12:00:00Z", "", time.Hour},
		"at its end": {fleetv1.Window{Start: "11:00", End: "12:00"}, "2026-11-24T12:00:00Z", "2026-11-25T11:00:00Z",
			23 * time.Hour},
		"before it":              {fleetv1.Window{Start: "22:00", End: "05:00"}, "2026-11-24T12:00:00Z", "2026-11-24T22:00:00Z", 10 * time.Hour},
		"after midnight, inside": {fleetv1.Window{Start: "22:00", End: "05:00"}, "2026-11-24T04:00:00Z", "", time.Hour},
		"after midnight, on the day after the chosen one": {
			fleetv1.Window{Days: day("Mon"), Start: "22:00", End: "05:00"}, "2026-11-24T04:00:00Z", "", time.Hour},
		"after midnight, the day before is not chosen": {
			fleetv1.Window{Days: day("Tue"), Start: "22:00", End: "05:00"}, "2026-11-24T04:00:00Z", "2026-11-24T22:00:00Z", 18 * time.Hour},
		"days ahead": {fleetv1.Window{Days: day("Fri", "Sat"), Start: "22:00", End: "05:00"}, "2026-11-24T12:00:00Z",
			"2026-11-27T22:00:00Z", 82 * time.Hour},
		"over for a week": {fleetv1.Window{Days: day("Tue"), Start: "10:00", End: "11:00"}, "2026-11-24T12:00:00Z",
			"2026-12-01T10:00:00Z", 166 * time.Hour},
		"another time zone": {fleetv1.Window{Start: "22:00", End: "05:00", TimeZone: "Europe/Berlin"},
			"2026-11-24T20:30:00Z", "2026-11-24T22:00:00+01:00", 30 * time.Minute},
		"the day in another time zone": {fleetv1.Window{Days: day("Wed"), Start: "00:00", End: "05:00", TimeZone: "Europe/Berlin"},
			"2026-11-24T23:30:00Z", "", 4*time.Hour + 30*time.Minute},
		"a night with 25 hours": {fleetv1.Window{Start: "22:00", End: "05:00", TimeZone: "Europe/Berlin"},
			"2026-10-24T20:00:00Z", "", 8 * time.Hour},
		"the whole day": {fleetv1.Window{Start: "00:00", End: "00:00"}, "2026-11-24T12:00:00Z", "", 12 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(fleetv1.NodeRolloutSpec{Window: &test.window}, good)
			var err error
			if m.now, err = time.Parse(time.RFC3339, test.now); err != nil {
				t.Fatal(err)
			}
			d := m.decide()
			if open := test.opens == ""; open != (len(d.Actions) == 1) {
				t.Errorf("open: %t, want %t", !open, open)
			}
			if want := "the window is closed until " + test.opens; test.opens != "" && d.Status.Message != want {
				t.Errorf("the message is %q, want %q", d.Status.Message, want)
			}
			if d.Again != test.again {
				t.Errorf("it decides again after %s, want %s", d.Again, test.again)
			}
		})
	}
}

// The message of a pause stays the same until its end, so the status is written once.
func TestTheEndOfACanarysPauseIsShown(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{Canary: []fleetv1.CanaryStep{{Nodes: intstr.FromInt32(1), Pause: "10m"}}},
		good, good)
	var status fleetv1.NodeRolloutStatus
	for status.State != rollout.StateWaiting {
		for _, a := range m.decide().Actions {
			m.act(a)
		}
		for _, n := range m.nodes {
			m.report(n.Name)
		}
		m.now = m.now.Add(time.Second)
		status = m.decide().Status
	}
	want := "the canary step pauses until " + m.node("w000").State.Spec.Since.Add(10*time.Minute).UTC().Format(time.RFC3339)
	for range 3 {
		if got := m.decide().Status.Message; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		m.now = m.now.Add(17 * time.Millisecond)
	}
}
