package swap_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/cases"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// scan is a virus scanner that opens one binary at a point of a transaction, and holds it.
type scan struct {
	destination string
	old         bool // the binary that was at the destination, else the new one
	duration    time.Duration
	point       point
}

func (s scan) String() string {
	which := "new"
	if s.old {
		which = "old"
	}
	return fmt.Sprintf("%s %s for %v at %s", which, s.destination, s.duration, s.point)
}

// TestEveryHeldFile runs a transaction with a scanner that opens each of its binaries at each of its operations.
func TestEveryHeldFile(t *testing.T) {
	for fault, result := range map[string]swap.Result{"": swap.Committed, "crash-at-start": swap.RolledBack} {
		t.Run(string(result), func(t *testing.T) {
			for _, c := range cases.Of(t, scansAt(pointsOf(t, fault, result)), 150) {
				t.Run(c.String(), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { runHeld(t, fault, c) })
				})
			}
		})
	}
}

func scansAt(points []point) (all []scan) {
	for _, p := range points {
		for _, destination := range []string{containerdExe, kubeletExe, containerdToml} {
			for _, old := range []bool{true, false} {
				for _, d := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 20 * time.Second, 90 * time.Second} {
					all = append(all, scan{destination, old, d, p})
				}
			}
		}
	}
	return all
}

func runHeld(t *testing.T, fault string, s scan) {
	r := newRun(t, fault)
	r.ForgetOperations()
	scanner, file := r.Spawn("MsMpEng.exe"), r.fileOf(t, s)
	var opened atomic.Bool
	closed := make(chan struct{})
	r.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if ours(op) && pointOf(op) == s.point && op.Phase == simulated.Before && !opened.Load() {
			opened.Store(true)
			h, err := scanner.Scan(r.pathOf(t, s.destination, file))
			if err != nil { // the file is gone
				close(closed)
				return simulated.Continue()
			}
			time.AfterFunc(s.duration, func() { _ = h.Close(); close(closed) })
		}
		return simulated.Continue()
	})
	r.transact()
	if !opened.Load() {
		t.Fatal("the transaction never came to this point")
	}
	if r.err != nil {
		t.Errorf("the session: %v", r.err)
	}
	r.checkNode(t, "after the session")
	<-closed
	r.contact(t)
	if s.old && s.duration > time.Minute { // the commit does not wait so long; the next transaction removes the file
		r.mayStay = layout.Undo(s.destination)
	}
	r.check(t, "after the next contact")
}

// fileOf returns the identity of the binary that the scanner opens.
func (r *run) fileOf(t *testing.T, s scan) platform.FileID {
	t.Helper()
	path := s.destination
	for _, c := range r.plan.Components {
		if c.Destination == s.destination && !s.old {
			path = c.Staged
		}
	}
	info, err := r.Process("look").Files.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ID
}

// pathOf returns the present path of a file beside a destination; "": it was removed.
func (r *run) pathOf(t *testing.T, destination string, file platform.FileID) string {
	t.Helper()
	entries, err := r.Process("look").Files.List(destination[:strings.LastIndex(destination, `\`)])
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.ID == file {
			return entry.Path
		}
	}
	return layout.Root
}

// scanWhen lets a scanner open a file before the first operation that a function chooses, and checks at the end that it
// did.
func (n *node) scanWhen(t *testing.T, path string, chosen func(simulated.Operation) bool, d time.Duration) {
	t.Helper()
	opened := n.ScanBefore(chosen, func() string { return path }, d)
	t.Cleanup(func() {
		if !opened() {
			t.Error("the scanner never opened the file")
		}
	})
}

func isKind(kind simulated.Kind) func(simulated.Operation) bool {
	return func(op simulated.Operation) bool { return op.Kind == kind }
}

func isRename(to string) func(simulated.Operation) bool {
	return func(op simulated.Operation) bool { return op.Kind == simulated.OpRename && op.Target == to }
}

// eventOf returns the first event of a state.
func eventOf(t *testing.T, events []swap.Event, state swap.State) swap.Event {
	t.Helper()
	for _, e := range events {
		if e.State == state {
			return e
		}
	}
	t.Fatalf("no event %s: %v", state, events)
	return swap.Event{}
}

func TestAHeldFileIsAwaitedBeforeAnythingStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		kubelet := n.stageKubelet(t, "v1.30.0", "")
		n.scanWhen(t, kubeletExe, isKind(simulated.OpServiceCreate), 20*time.Second)

		outcome, events := n.push(t, kubelet)

		waited := eventOf(t, events, swap.Stopping).Time.Sub(eventOf(t, events, swap.Waiting).Time)
		message := outcome.Components[0].Message
		verbose("%s", message)
		switch {
		case outcome.Result != swap.Committed:
			t.Errorf("outcome: %+v", outcome)
		case waited < 19*time.Second:
			t.Errorf("a service was stopped after %v", waited)
		case outcome.Down > 10*time.Second:
			t.Errorf("kubelet was down for %v", outcome.Down)
		case !strings.Contains(message, "MsMpEng.exe") || !strings.Contains(message, kubeletExe) ||
			!strings.Contains(message, "s before the stop"):
			t.Errorf("the message is %q, want the file, its holder and the time", message)
		}
	})
}

func TestNothingStopsForAFileThatStaysHeld(t *testing.T) {
	for _, unnamed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t)
			old := n.read(t, kubeletExe)
			scan := n.Spawn("MsMpEng.exe").Scan
			if unnamed {
				scan = n.Spawn("MsMpEng.exe").ScanUnnamed
			}
			if _, err := scan(kubeletExe); err != nil {
				t.Fatal(err)
			}
			pid := n.service(t, "kubelet").PID

			outcome, _ := n.push(t, n.stageKubelet(t, "v1.30.0", ""))

			message := outcome.Components[0].Message
			verbose("%s", message)
			want := "MsMpEng.exe (PID "
			if unnamed {
				want = "a program that Windows does not name"
			}
			switch {
			case outcome.Result != swap.RolledBack || outcome.FailedComponent != "kubelet":
				t.Errorf("outcome: %+v", outcome)
			case !strings.Contains(message, want) || !strings.Contains(message, "waited 30s before the stop") ||
				strings.Contains(message, "kubelet.exe (PID"):
				t.Errorf("the message is %q, want %q and the time", message, want)
			case n.service(t, "kubelet").PID != pid:
				t.Error("kubelet was stopped")
			}
			equalBytes(t, "kubelet", n.read(t, kubeletExe), old)
		})
	}
}

// A scanner reads an executable when the program that ran it has ended: then the services are stopped already.
func TestAFileThatIsHeldAfterTheStopIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.scanWhen(t, kubeletExe, isRename(layout.Undo(kubeletExe)), 90*time.Second)

		outcome, events := n.push(t, n.stageKubelet(t, "v1.30.0", ""))

		message := outcome.Components[0].Message
		verbose("%s", message)
		switch {
		case outcome.Result != swap.RolledBack:
			t.Errorf("outcome: %+v", outcome)
		case outcome.Down > 15*time.Second:
			t.Errorf("kubelet was down for %v", outcome.Down)
		case !strings.Contains(message, "waited 5s after the stop") || !strings.Contains(message, "MsMpEng.exe"):
			t.Errorf("the message is %q, want the holder and the time", message)
		case n.service(t, "kubelet").State != platform.Running:
			t.Error("kubelet is not running")
		}
		eventOf(t, events, swap.Waiting)
	})
}

// The new kubelet crashes, and WerFault reads its file: containerd must not wait for that.
func TestAnUndoStartsWhatIsInPlaceAndNeverGivesUp(t *testing.T) {
	for _, hold := range []time.Duration{90 * time.Second, 10 * time.Minute} {
		t.Run(hold.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				old := n.read(t, kubeletExe)
				m, p := n.session()
				defer p.Exit()
				kubelet := n.stageKubelet(t, "v1.30.0", "crash-at-start")
				containerd := n.stageContainerd(t, "1.6.27", "")
				undone := func(op simulated.Operation) bool { return op.Kind == simulated.OpRename && op.From == kubeletExe }
				n.scanWhen(t, kubeletExe, func(op simulated.Operation) bool {
					return undone(op) && op.Target == kubelet.Staged
				}, hold)
				id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester",
					Components: []swap.Component{containerd, kubelet}})
				if err != nil {
					t.Fatal(err)
				}
				var waiting bool
				outcome, err := swap.Follow(t.Context(), m, id, func(e swap.Event) {
					if e.State == swap.Waiting && !waiting {
						waiting = true
						if !strings.Contains(e.Message, "MsMpEng.exe") {
							t.Errorf("the event is %q, want the holder", e.Message)
						}
						eventually(t, "containerd runs while kubelet's file is held", func() bool {
							return n.service(t, "containerd").State == platform.Running
						})
						if s := n.service(t, "kubelet"); s.State != platform.Stopped {
							t.Errorf("kubelet is %s, with its new binary", s.State)
						}
					}
				})
				if !waiting {
					t.Error("no event says that the undo waits")
				}
				if hold < time.Minute*2 && (err != nil || outcome.Result != swap.RolledBack) {
					t.Errorf("outcome: %+v, %v", outcome, err)
				}
				var stuck *swap.StuckError
				if hold > time.Minute*2 && (!errors.As(err, &stuck) || !stuck.Guarded) {
					t.Errorf("the error is %v, want a *swap.StuckError of a node that keeps trying", err)
				}
				for range 20 {
					if n.service(t, "kubelet").State == platform.Running {
						break
					}
					eventually(t, "a minute is over", minute())
				}
				if s := n.service(t, "kubelet"); s.State != platform.Running {
					t.Errorf("kubelet is %s", s.State)
				}
				equalBytes(t, "kubelet", n.read(t, kubeletExe), old)
			})
		})
	}
}

// minute returns a condition that holds after half a minute.
func minute() func() bool {
	begun := time.Now()
	return func() bool { return time.Since(begun) > 30*time.Second }
}

// A guardian that is killed while it waits for a file is started again by the SCM, without any contact.
func TestAWaitingGuardianIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, p := n.session()
		kubelet := n.stageKubelet(t, "v1.30.0", "crash-at-start")
		n.scanWhen(t, kubeletExe, isRename(kubelet.Staged), 90*time.Second)
		id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester", Components: []swap.Component{kubelet}})
		if err != nil {
			t.Fatal(err)
		}
		var waits atomic.Bool
		go func() {
			_, _ = swap.Follow(t.Context(), m, id, func(e swap.Event) {
				if e.State == swap.Waiting {
					waits.Store(true)
				}
			})
		}()
		eventually(t, "the undo waits", waits.Load)
		p.Exit()
		if killed := n.Kill(layout.GuardianService); killed != 1 {
			t.Fatalf("%d guardians were killed", killed)
		}
		eventually(t, "half a minute is over", minute())
		eventually(t, "another half minute is over", minute())
		eventually(t, "kubelet runs", func() bool { return n.service(t, "kubelet").State == platform.Running })
	})
}
