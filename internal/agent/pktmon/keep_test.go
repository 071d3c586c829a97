package pktmon_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// captured returns a session that continues after the end of its capture.
func captured(t *testing.T, n *node, id string) (pktmon.Machine, *simulated.Process) {
	t.Helper()
	m, p := n.session()
	hold, err := pktmon.Begin(t.Context(), m, plan(id))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it captures", func() bool { return n.captures(t) })
	if err := hold.Release(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has ended", func() bool { return n.done(t) })
	return m, p
}

// A capture that begins while another session fetches does not remove that session's packets or result. After the
// session has ended they may be removed.
func TestACaptureThatIsBeingFetchedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		first, p := captured(t, n, "a")
		_, q := captured(t, n, "b")
		defer q.Exit()
		if got := n.packets(t); !slices.Contains(got, captureplan.LogFile("a")) {
			t.Fatalf("the first capture's packets are gone: %v", got)
		}
		// The first session has not polled since its capture ended.
		var last captureplan.Event
		err := pktmon.Follow(t.Context(), first, "a", func(e captureplan.Event) error { last = e; return nil })
		switch {
		case err != nil:
			t.Fatalf("the first session's result: %v", err)
		case last.Outcome == nil:
			t.Fatal("the first session's result: last.Outcome is nil")
		case last.Outcome.Result != captureplan.Captured:
			t.Fatalf("the first session's result: last.Outcome.Result is %v, want %v", last.Outcome.Result,
				captureplan.Captured)
		}
		p.Exit()
		_, r := captured(t, n, "c")
		defer r.Exit()
		if got := n.packets(t); slices.Contains(got, captureplan.LogFile("a")) ||
			!slices.Contains(got, captureplan.LogFile("b")) {
			t.Fatalf("on the node: %v, want those of b, which is held, and not of a", got)
		}
	})
}

// Packets that no session fetches stay for KeepFor, with or without contacts to the node.
func TestPacketsThatNobodyFetchesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		_, p := captured(t, n, "a")
		p.Exit()
		time.Sleep(captureplan.KeepFor - time.Minute)
		if got := n.packets(t); len(got) != 1 || !n.guarded(t) {
			t.Fatalf("before its time: %v", got)
		}
		// A session that fetches them later holds them.
		m, q := n.session()
		kept, err := pktmon.Keep(m.Platform.Files, "a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := n.packets(t); len(got) != 1 {
			t.Fatalf("while they are fetched: %v", got)
		}
		if err := kept.Unlock(); err != nil {
			t.Fatal(err)
		}
		q.Exit()
		eventually(t, "the packets and the guardian have gone", func() bool {
			return len(n.packets(t)) == 0 && !n.guarded(t)
		})
	})
}

// Without a readable journal, the guardian removes the packets after KeepFor as well.
func TestPacketsGoWithoutAReadableJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		_, p := captured(t, n, "a")
		n.WriteFile(layout.CaptureJournal, []byte("damaged"))
		p.Exit()
		time.Sleep(captureplan.KeepFor - time.Minute)
		if got := n.packets(t); len(got) != 1 || !n.guarded(t) {
			t.Fatalf("before its time: packets %v; guarded: %v", got, n.guarded(t))
		}
		eventually(t, "the packets and the guardian have gone", func() bool {
			return len(n.packets(t)) == 0 && !n.guarded(t)
		})
	})
}

// A guardian whose process is killed ends at once: while it captures, and while it waits for the packets to be
// fetched.
func TestAKilledGuardianEndsAtOnce(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, n *node){
		"while it captures": func(t *testing.T, n *node) {
			m, _ := n.session()
			if _, err := pktmon.Begin(t.Context(), m, plan("a")); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it captures", func() bool { return n.captures(t) })
		},
		"while it waits": func(t *testing.T, n *node) { captured(t, n, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				prepare(t, n)
				begun := time.Now()
				n.Close()
				if took := time.Since(begun); took > time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestTheGuardianGoesOnceThePacketsAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		_, p := captured(t, n, "a")
		n.fetched(t)
		p.Exit()
		begun := time.Now()
		eventually(t, "the guardian has gone", func() bool { return !n.guarded(t) })
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
