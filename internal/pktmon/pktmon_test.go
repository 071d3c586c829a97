package pktmon_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/host/simulated"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/pktmon"
)

// capture begins, lets go once the node captures, and follows to the end.
func capture(t *testing.T, n *node, plan pktmon.Plan) (pktmon.Outcome, []pktmon.State) {
	t.Helper()
	m, p := n.session()
	defer p.Exit()
	hold, err := pktmon.Begin(t.Context(), m, plan)
	if err != nil {
		t.Fatal(err)
	}
	var outcome pktmon.Outcome
	var states []pktmon.State
	err = pktmon.Follow(t.Context(), m, plan.ID, func(e pktmon.Event) error {
		states = append(states, e.State)
		if e.State == pktmon.Capturing && plan.For == 0 {
			if !n.captures(t) || !n.hasFilters(t) {
				t.Error("the node is said to capture, and does not")
			}
			return hold.Release()
		}
		if e.Outcome != nil {
			outcome = *e.Outcome
		}
		return nil
	})
	if err := errors.Join(err, hold.Release()); err != nil {
		t.Fatal(err)
	}
	return outcome, states
}

func TestACaptureEndsWhenItIsLetGo(t *testing.T) {
	for name, plan := range map[string]pktmon.Plan{"to a file": plan("a"), "live": live("a")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				outcome, states := capture(t, n, plan)
				if outcome.Result != pktmon.Captured || outcome.Reason != "it was let go" {
					t.Errorf("%+v", outcome)
				}
				if states[len(states)-1] != pktmon.Done || !slices.Contains(states, pktmon.Capturing) {
					t.Errorf("states %v", states)
				}
				path := pktmon.LogFile("a")
				if plan.Live {
					path = pktmon.TextFile("a")
				}
				if text := n.read(t, path); len(text) < 100 {
					t.Errorf("%s has %d bytes", path, len(text))
				}
				n.checkClean(t, "after it")
			})
		})
	}
}

// TestACaptureFollowsAnotherAtOnce: a guardian lets go of the node a while after the
// end of its capture is known, and the next capture waits for that.
func TestACaptureFollowsAnotherAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpUnlock && op.Service == layout.CaptureService && op.Phase == simulated.Before {
				<-time.After(5 * time.Second)
			}
			return simulated.Continue()
		})
		for _, id := range []string{"a", "b"} {
			if outcome, _ := capture(t, n, plan(id)); outcome.Result != pktmon.Captured {
				t.Errorf("%s: %+v", id, outcome)
			}
		}
		n.checkClean(t, "after both")
	})
}

func TestACaptureEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		p := plan("a")
		p.For = time.Minute
		begun := time.Now()
		outcome, _ := capture(t, n, p)
		if outcome.Reason != "its time was over" || time.Since(begun) < time.Minute || time.Since(begun) > 70*time.Second {
			t.Errorf("%+v after %s", outcome, time.Since(begun))
		}
		n.checkClean(t, "after it")
	})
}

func TestALiveCaptureEndsWhereItHasPrintedEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		p := live("a")
		p.MaxText, p.For = 2000, time.Hour
		outcome, _ := capture(t, n, p)
		if outcome.Result != pktmon.Captured || !strings.Contains(outcome.Reason, "as much as it may") {
			t.Errorf("%+v", outcome)
		}
		if text := n.read(t, pktmon.TextFile("a")); len(text) != 2000 {
			t.Errorf("%d bytes", len(text))
		}
		n.checkClean(t, "after it")
	})
}

// What pktmon refuses ends the capture, with its words, and takes back what was
// done.
func TestPktmonRefuses(t *testing.T) {
	for name, change := range map[string]func(*pktmon.Plan){
		"a filter": func(p *pktmon.Plan) { p.Filters = append(p.Filters, []string{"--nonsense"}) },
		"to start": func(p *pktmon.Plan) { p.Start = append(p.Start, "--nonsense") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				p := plan("a")
				change(&p)
				outcome, _ := capture(t, n, p)
				if outcome.Result != pktmon.Failed || !strings.Contains(outcome.Reason, "--nonsense") || !strings.Contains(outcome.Reason, "exit code 1") {
					t.Errorf("%+v", outcome)
				}
				n.checkClean(t, "after it")
			})
		})
	}
}

func TestSomebodyElseCaptures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pktmon(t, "filter", "add", "theirs", "-p", "80")
		n.pktmon(t, "start", "--capture", "--file-name", `C:\Windows\Temp\theirs.etl`)
		outcome, states := capture(t, n, plan("a"))
		if outcome.Result != pktmon.Refused || !strings.Contains(outcome.Running, "theirs.etl") || len(outcome.Filters) != 1 {
			t.Fatalf("%v: %+v", states, outcome)
		}
		if !n.captures(t) || !strings.Contains(n.pktmon(t, "filter", "list"), "theirs") {
			t.Fatal("what was somebody else's is gone")
		}
		forced := plan("b")
		forced.Force = true
		if outcome, _ := capture(t, n, forced); outcome.Result != pktmon.Captured {
			t.Fatalf("with force: %+v", outcome)
		}
		n.checkClean(t, "after force")
	})
}

// Packets of a capture that somebody else has ended are fewer than they seem.
func TestSomebodyElseEndsACapture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, p := n.session()
		defer p.Exit()
		ending := plan("a")
		ending.For = time.Minute
		hold, err := pktmon.Begin(t.Context(), m, ending)
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Release()
		var outcome *pktmon.Outcome
		err = pktmon.Follow(t.Context(), m, "a", func(e pktmon.Event) error {
			if e.State == pktmon.Capturing {
				n.pktmon(t, "stop")
			}
			outcome = e.Outcome
			return nil
		})
		if err != nil || outcome == nil || outcome.Reason != "its time was over; before that, somebody else ended the capture with pktmon" {
			t.Errorf("%+v, %v", outcome, err)
		}
		n.checkClean(t, "after it")
	})
}

// Filters that somebody adds while we capture are not removed: and pktmon cannot
// remove only ours.
func TestSomebodyAddsAFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, p := n.session()
		defer p.Exit()
		hold, err := pktmon.Begin(t.Context(), m, plan("a"))
		if err != nil {
			t.Fatal(err)
		}
		var outcome *pktmon.Outcome
		err = pktmon.Follow(t.Context(), m, "a", func(e pktmon.Event) error {
			if e.State == pktmon.Capturing {
				n.pktmon(t, "filter", "add", "theirs", "-p", "80")
				return hold.Release()
			}
			outcome = e.Outcome
			return nil
		})
		if err != nil || outcome == nil || !strings.Contains(outcome.Kept, "2 filters") {
			t.Fatalf("%+v, %v", outcome, err)
		}
		if n.captures(t) || !strings.Contains(n.pktmon(t, "filter", "list"), "theirs") {
			t.Error("theirs is gone, or the node captures")
		}
	})
}

func TestOneCaptureAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, p := n.session()
		hold, err := pktmon.Begin(t.Context(), m, plan("a"))
		if err != nil {
			t.Fatal(err)
		}
		other, q := n.session()
		defer q.Exit()
		if _, err := pktmon.Begin(t.Context(), other, plan("b")); !errors.Is(err, pktmon.ErrBusy) || !strings.Contains(err.Error(), "tester") {
			t.Fatalf("a second one: %v", err)
		}
		p.Kill() // with it goes its hold
		_ = hold
		eventually(t, "the capture has ended", func() bool { return !n.captures(t) && !n.guarded(t) })
		if outcome, _ := capture(t, n, plan("c")); outcome.Result != pktmon.Captured {
			t.Errorf("the next: %+v", outcome)
		}
		if _, err := n.Process("look").Files.Stat(pktmon.LogFile("a")); err == nil {
			t.Error("the next capture leaves the packets that nobody fetched")
		}
		n.checkClean(t, "in the end")
	})
}

// Somebody fetches a capture while the next one begins: neither is in the other's way.
func TestACaptureWhileAnotherIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		capture(t, n, plan("a"))
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpRemove && op.Phase == simulated.Before && op.Target == pktmon.LogFile("a") {
				return simulated.Fail(host.ErrInUse)
			}
			return simulated.Continue()
		})
		if outcome, _ := capture(t, n, plan("b")); outcome.Result != pktmon.Captured || !n.has(pktmon.LogFile("a")) {
			t.Errorf("%+v, and the older one is there: %v", outcome, n.has(pktmon.LogFile("a")))
		}
		n.OnOperation(nil)
		if capture(t, n, plan("c")); n.has(pktmon.LogFile("a")) || n.has(pktmon.LogFile("b")) {
			t.Error("older captures are left")
		}
		n.checkClean(t, "in the end")
	})
}

// An older pktmon cannot be asked whether it captures.
func TestABlindPktmon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.WriteFile(`C:\Windows\Temp\pktmon-build.txt`, []byte("17763"))
		p := plan("a")
		p.Blind, p.Start = true, []string{"start", "--etw", "-p", "0", "-f", pktmon.LogFile("a"), "-s", "10"}
		m, session := n.session()
		defer session.Exit()
		hold, err := pktmon.Begin(t.Context(), m, p)
		if err != nil {
			t.Fatal(err)
		}
		err = pktmon.Follow(t.Context(), m, "a", func(e pktmon.Event) error {
			if e.State == pktmon.Capturing {
				return hold.Release()
			}
			if e.Outcome != nil && e.Outcome.Result != pktmon.Captured {
				t.Errorf("%+v", e.Outcome)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		n.WriteFile(`C:\Windows\Temp\pktmon-build.txt`, []byte("20348"))
		n.checkClean(t, "after it")
	})
}

func TestPlansThatMakeNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := newNode(t).session()
		defer p.Exit()
		for _, bad := range []pktmon.Plan{{}, {ID: "a"}, {ID: `..\..\x`, Start: []string{"start"}}, {ID: "a b", Start: []string{"start"}}} {
			if _, err := pktmon.Begin(t.Context(), m, bad); err == nil {
				t.Errorf("%+v is begun", bad)
			}
		}
	})
}

func (n *node) read(t *testing.T, path string) []byte {
	t.Helper()
	file, err := n.Process("look").Files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
