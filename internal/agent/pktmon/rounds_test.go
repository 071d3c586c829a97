package pktmon_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
)

// rounds captures in rounds. It calls closed after each round; closed ends the
// capture by returning true.
func rounds(t *testing.T, n *node, plan captureplan.Plan, closed func(captureplan.Rounds) bool) (
	outcome captureplan.Outcome, last captureplan.Rounds) {
	t.Helper()
	m, p := n.session()
	defer p.Exit()
	hold, err := pktmon.Begin(t.Context(), m, plan)
	if err != nil {
		t.Fatal(err)
	}
	err = pktmon.Follow(t.Context(), m, plan.ID, func(e captureplan.Event) error {
		last = e.Rounds
		if e.Outcome != nil {
			outcome = *e.Outcome
		}
		if e.State == captureplan.Capturing && e.Closed > 0 && closed(e.Rounds) {
			return hold.Release()
		}
		return nil
	})
	if err := errors.Join(err, hold.Release()); err != nil {
		t.Fatal(err)
	}
	return outcome, last
}

func (n *node) has(path string) bool {
	_, err := n.Process("look").Files.Stat(path)
	return err == nil
}

// Each round's log exists while the next is being written, and the last one at
// the end.
func TestACaptureInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		began, before := time.Now(), time.Time{}
		outcome, last := rounds(t, n, inRounds("a"), func(r captureplan.Rounds) bool {
			path := captureplan.RoundFile("a", r.Closed)
			if !n.captures(t) || len(n.read(t, path)) < 100 {
				t.Errorf("round %d: captures %v", r.Closed, n.captures(t))
			}
			if r.Until.Before(before.Add(2*time.Second)) || r.Until.After(time.Now()) {
				t.Errorf("round %d ended at %s, the one before at %s", r.Closed, r.Until, before)
			}
			before = r.Until
			if err := n.Process("fetch").Files.Remove(path); err != nil {
				t.Error(err)
			}
			return r.Closed == 4
		})
		switch {
		case outcome.Result != captureplan.Captured:
			t.Errorf("outcome.Result is %v, want %v", outcome.Result, captureplan.Captured)
		case last.Closed != 4:
			t.Errorf("last.Closed is %v, want 4", last.Closed)
		case last.Missed < 0:
			t.Errorf("last.Missed is %v, want at least 0", last.Missed)
		case last.Missed > time.Second:
			t.Errorf("last.Missed is %v, want at most %v", last.Missed, time.Second)
		}
		if took := time.Since(began); took < 8*time.Second || took > 12*time.Second {
			t.Errorf("4 rounds of 2s took %s", took)
		}
		if len(n.read(t, captureplan.RoundFile("a", 5))) < 100 || n.has(captureplan.RoundFile("a", 6)) {
			t.Error("the last round's packets are not there")
		}
		n.checkClean(t, "after it")
	})
}

// If no session fetches rounds, the current one continues, so that the node's
// disk does not fill; it ends after one was fetched.
func TestRoundsWaitUntilTheyAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		began := time.Now()
		outcome, last := rounds(t, n, inRounds("a"), func(r captureplan.Rounds) bool {
			if r.Closed < 2 {
				return false
			}
			if r.Closed == 2 {
				time.AfterFunc(time.Minute, func() {
					if n.has(captureplan.RoundFile("a", 4)) {
						t.Error("a third round was closed, although none was fetched")
					}
					_ = n.Process("fetch").Files.Remove(captureplan.RoundFile("a", 1))
				})
			}
			return r.Closed == 3
		})
		switch {
		case outcome.Result != captureplan.Captured:
			t.Errorf("outcome.Result is %v, want %v", outcome.Result, captureplan.Captured)
		case last.Closed != 3:
			t.Errorf("last.Closed is %v, want 3", last.Closed)
		case time.Since(began) < time.Minute:
			t.Errorf("time.Since(began) is %v, want at least %v", time.Since(began), time.Minute)
		}
		n.checkClean(t, "after it")
	})
}

// If another program ends swdt's capture and begins its own, swdt's fails and
// the other one continues.
func TestAnotherProgramTakesThePacketMonitorBetweenRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		outcome, _ := rounds(t, n, inRounds("a"), func(captureplan.Rounds) bool {
			n.pktmon(t, "stop")
			n.pktmon(t, "start", "--capture", "--file-name", `C:\Windows\Temp\theirs.etl`)
			return false
		})
		switch {
		case outcome.Result != captureplan.Failed:
			t.Errorf("outcome.Result is %v, want %v", outcome.Result, captureplan.Failed)
		case outcome.Reason != pktmon.ErrEndedByOther.Error():
			t.Errorf("outcome.Reason is %v, want %v", outcome.Reason, pktmon.ErrEndedByOther.Error())
		}
		if !n.captures(t) {
			t.Error("theirs was ended")
		}
		if n.hasFilters(t) {
			t.Error("our filters are left")
		}
	})
}

func TestRoundsNeedALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := newNode(t).session()
		defer p.Exit()
		both, other, negative := live("a"), inRounds("a"), inRounds("a")
		both.Round, other.Start, negative.Round = time.Second, []string{"start", "--capture"}, -1
		for _, bad := range []captureplan.Plan{both, other, negative} {
			if _, err := pktmon.Begin(t.Context(), m, bad); err == nil {
				t.Errorf("%+v is begun", bad)
			}
		}
	})
}
