package pktmon_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// capture begins, releases the capture once the node captures, and follows it to the end.
func capture(t *testing.T, n *node, plan captureplan.Plan) (captureplan.Outcome, []captureplan.State) {
	t.Helper()
	m, p := n.session()
	defer p.Exit()
	hold, err := pktmon.Begin(t.Context(), m, plan)
	if err != nil {
		t.Fatal(err)
	}
	var outcome captureplan.Outcome
	var states []captureplan.State
	err = pktmon.Follow(t.Context(), m, plan.ID, func(e captureplan.Event) error {
		states = append(states, e.State)
		if e.State == captureplan.Capturing && plan.For == 0 {
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
	for name, plan := range map[string]captureplan.Plan{"to a file": plan("a"), "live": live("a")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				outcome, states := capture(t, n, plan)
				switch {
				case outcome.Result != captureplan.Captured:
					t.Errorf("outcome.Result is %v, want %v", outcome.Result, captureplan.Captured)
				case outcome.Reason != "it was released":
					t.Errorf("outcome.Reason is %q, want %q", outcome.Reason, "it was released")
				}
				if states[len(states)-1] != captureplan.Done || !slices.Contains(states, captureplan.Capturing) {
					t.Errorf("states %v", states)
				}
				path := captureplan.LogFile("a")
				if plan.Live {
					path = captureplan.TextFile("a")
				}
				if text := n.read(t, path); len(text) < 100 {
					t.Errorf("%s has %d bytes", path, len(text))
				}
				n.checkClean(t, "after it")
			})
		})
	}
}

// TestACaptureFollowsAnotherAtOnce: a guardian releases the node a while after the end of its capture is known, and
// the next capture waits for that.
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
			if outcome, _ := capture(t, n, plan(id)); outcome.Result != captureplan.Captured {
				t.Errorf("%s: outcome.Result is %v, want %v", id, outcome.Result, captureplan.Captured)
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
		switch {
		case outcome.Reason != "its time was over":
			t.Errorf("outcome.Reason is %q, want %q", outcome.Reason, "its time was over")
		case time.Since(begun) < time.Minute:
			t.Errorf("time.Since(begun) is %v, want at least %v", time.Since(begun), time.Minute)
		case time.Since(begun) > 70*time.Second:
			t.Errorf("time.Since(begun) is %v, want at most %v", time.Since(begun), 70*time.Second)
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
		switch {
		case outcome.Result != captureplan.Captured:
			t.Errorf("outcome.Result is %v, want %v", outcome.Result, captureplan.Captured)
		case !strings.Contains(outcome.Reason, "limit of output"):
			t.Errorf("outcome.Reason lacks %q:\n%s", "limit of output", outcome.Reason)
		}
		if text := n.read(t, captureplan.TextFile("a")); len(text) != 2000 {
			t.Errorf("%d bytes", len(text))
		}
		n.checkClean(t, "after it")
	})
}

// If pktmon refuses a command, the capture ends with pktmon's message, and its changes are undone.
func TestPktmonRefuses(t *testing.T) {
	for name, change := range map[string]func(*captureplan.Plan){
		"a filter": func(p *captureplan.Plan) { p.Filters = append(p.Filters, []string{"--nonsense"}) },
		"to start": func(p *captureplan.Plan) { p.Start = append(p.Start, "--nonsense") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				p := plan("a")
				change(&p)
				outcome, _ := capture(t, n, p)
				switch {
				case outcome.Result != captureplan.Failed:
					t.Errorf("outcome.Result is %v, want %v", outcome.Result, captureplan.Failed)
				case !strings.Contains(outcome.Reason, "--nonsense"):
					t.Errorf("outcome.Reason lacks %q:\n%s", "--nonsense", outcome.Reason)
				case !strings.Contains(outcome.Reason, "exit code 1"):
					t.Errorf("outcome.Reason lacks %q:\n%s", "exit code 1", outcome.Reason)
				}
				n.checkClean(t, "after it")
			})
		})
	}
}

func TestAnotherProgramsCaptureIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pktmon(t, "filter", "add", "theirs", "-p", "80")
		n.pktmon(t, "start", "--capture", "--file-name", `C:\Windows\Temp\theirs.etl`)
		outcome, states := capture(t, n, plan("a"))
		switch {
		case outcome.Result != captureplan.Refused:
			t.Fatalf("%v: outcome.Result is %v, want %v", states, outcome.Result, captureplan.Refused)
		case !strings.Contains(outcome.Running, "theirs.etl"):
			t.Fatalf("%v: outcome.Running lacks %q:\n%s", states, "theirs.etl", outcome.Running)
		case len(outcome.Filters) != 1:
			t.Fatalf("%v: outcome.Filters has %d elements, want 1: %v", states, len(outcome.Filters), outcome.Filters)
		}
		if !n.captures(t) || !strings.Contains(n.pktmon(t, "filter", "list"), "theirs") {
			t.Fatal("another program's capture or filters are gone")
		}
		forced := plan("b")
		forced.Force = true
		if outcome, _ := capture(t, n, forced); outcome.Result != captureplan.Captured {
			t.Fatalf("with force: %+v", outcome)
		}
		n.checkClean(t, "after force")
	})
}

// If another program ended the capture, its packets are incomplete.
func TestAnotherProgramEndsACapture(t *testing.T) {
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
		var outcome *captureplan.Outcome
		err = pktmon.Follow(t.Context(), m, "a", func(e captureplan.Event) error {
			if e.State == captureplan.Capturing {
				n.pktmon(t, "stop")
			}
			outcome = e.Outcome
			return nil
		})
		switch {
		case err != nil:
			t.Error(err)
		case outcome == nil:
			t.Error("outcome is nil")
		case outcome.Reason != "its time was over; before that, another program ended "+
			"the capture with pktmon":
			t.Errorf("outcome.Reason is %v, want %v", outcome.Reason,
				"its time was over; before that, another program ended "+
					"the capture with pktmon")
		}
		n.checkClean(t, "after it")
	})
}

// Filters that another program adds during the capture are not removed; and pktmon cannot remove only swdt's.
func TestAnotherProgramAddsAFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, p := n.session()
		defer p.Exit()
		hold, err := pktmon.Begin(t.Context(), m, plan("a"))
		if err != nil {
			t.Fatal(err)
		}
		var outcome *captureplan.Outcome
		err = pktmon.Follow(t.Context(), m, "a", func(e captureplan.Event) error {
			if e.State == captureplan.Capturing {
				n.pktmon(t, "filter", "add", "theirs", "-p", "80")
				return hold.Release()
			}
			outcome = e.Outcome
			return nil
		})
		switch {
		case err != nil:
			t.Fatal(err)
		case outcome == nil:
			t.Fatal("outcome is nil")
		case !strings.Contains(outcome.Kept, "2 filters"):
			t.Fatalf("outcome.Kept lacks %q:\n%s", "2 filters", outcome.Kept)
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
		if _, err := pktmon.Begin(t.Context(), other, plan("b")); !errors.Is(err, pktmon.ErrBusy) ||
			!strings.Contains(err.Error(), "tester") {
			t.Fatalf("a second one: %v", err)
		}
		eventually(t, "it captures", func() bool { return n.captures(t) })
		p.Kill() // which also releases its lock
		_ = hold
		eventually(t, "the capture has ended", func() bool { return !n.captures(t) && n.done(t) })
		if outcome, _ := capture(t, n, plan("c")); outcome.Result != captureplan.Captured {
			t.Errorf("the next: %+v", outcome)
		}
		if _, err := n.Process("look").Files.Stat(captureplan.LogFile("a")); err == nil {
			t.Error("the next capture does not remove packets that were not fetched")
		}
		n.checkClean(t, "in the end")
	})
}

// One session fetches a capture while the next capture begins: neither disturbs the other.
func TestACaptureWhileAnotherIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		capture(t, n, plan("a"))
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpRemove && op.Phase == simulated.Before && op.Target == captureplan.LogFile("a") {
				return simulated.Fail(fault.ErrInUse)
			}
			return simulated.Continue()
		})
		if outcome, _ := capture(t, n, plan("b")); outcome.Result != captureplan.Captured ||
			!n.has(captureplan.LogFile("a")) {
			t.Errorf("%+v, and the older one is there: %v", outcome, n.has(captureplan.LogFile("a")))
		}
		n.OnOperation(nil)
		if capture(t, n, plan("c")); n.has(captureplan.LogFile("a")) || n.has(captureplan.LogFile("b")) {
			t.Error("older captures are left")
		}
		n.checkClean(t, "in the end")
	})
}

// An older pktmon cannot report whether it captures.
func TestABlindPktmon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.WriteFile(`C:\Windows\Temp\pktmon-build.txt`, []byte("17763"))
		p := plan("a")
		p.Blind, p.Start = true, []string{"start", "--etw", "-p", "0", "-f", captureplan.LogFile("a"), "-s", "10"}
		m, session := n.session()
		defer session.Exit()
		hold, err := pktmon.Begin(t.Context(), m, p)
		if err != nil {
			t.Fatal(err)
		}
		err = pktmon.Follow(t.Context(), m, "a", func(e captureplan.Event) error {
			if e.State == captureplan.Capturing {
				return hold.Release()
			}
			if e.Outcome != nil && e.Outcome.Result != captureplan.Captured {
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
		for _, bad := range []captureplan.Plan{{}, {ID: "a"}, {ID: `..\..\x`, Start: []string{"start"}},
			{ID: "a b", Start: []string{"start"}}} {
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

// A journal that a power cut or another program damaged starts no guardian, and the next capture replaces it.
func TestADamagedJournalIsReplaced(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "zeros": "\x00\x00\x00", "null": "null", "cut": `{"plan":{"id":"a"`,
		"another place": `{"plan":{"id":"..\\..\\x","start":["start"]},"state":"capturing"}`,
		"two words":     `{"plan":{"id":"a b","start":["start"]},"state":"capturing"}`,
		"no end":        `{"plan":{"id":"a","start":["start"]},"state":"done"}`,
		"another state": `{"plan":{"id":"a","start":["start"]},"state":"x"}`,
		"too large":     strings.Repeat(" ", 8<<20) + `{"plan":{"id":"a","start":["start"]},"state":"prepared"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t)
			n.WriteFile(layout.CaptureJournal, []byte(content))
			m, p := n.session()
			defer p.Exit()
			if err := pktmon.Heal(t.Context(), m); err == nil || n.guarded(t) {
				t.Errorf("%s: healed: %v; guarded: %v", name, err, n.guarded(t))
			}
			_, q := captured(t, n, "b")
			q.Exit()
			n.checkClean(t, name)
		})
	}
}

// TestAGuardianCleansUpOnceTheDiskHasSpaceAgain: without any contact, although its first tries to record the end of
// the capture fail.
func TestAGuardianCleansUpOnceTheDiskHasSpaceAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		failed := 0
		m, p := n.session()
		hold, err := pktmon.Begin(t.Context(), m, plan("a"))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the node captures", func() bool { return n.captures(t) })
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpCreate && op.Service == layout.CaptureService && failed < 3 {
				failed++
				return simulated.DiskFull()
			}
			return simulated.Continue()
		})
		if err := errors.Join(hold.Release(), hold.Forget()); err != nil {
			t.Fatal(err)
		}
		p.Exit()
		n.checkClean(t, "without any contact")
		if failed != 3 {
			t.Errorf("the disk was full %d times, not 3", failed)
		}
	})
}
