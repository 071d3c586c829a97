package nodetest

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/cases"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Strikes interrupt a run on a node at each change that the run makes to the machine. Points records
// the changes of an undisturbed run, Each runs a test for each change, Node.Strike interrupts the run
// at one change, and Node.Restore connects again afterwards.
type Strikes struct {
	// Asker returns the name of the process that requests an operation, the same in
	// every run; "" for a process that must not be interrupted.
	Asker func(simulated.Operation) string
	// Dying are the names of the processes that are killed together with the process that
	// requests the operation.
	Dying []string
}

// Session reports whether a session of the agent requests the operation.
func Session(op simulated.Operation) bool { return strings.HasPrefix(op.Process, "session ") }

// OfTransactions returns the Strikes that interrupt sessions and the guardian, which carries out a transaction.
func OfTransactions() Strikes {
	return Strikes{Asker: func(op simulated.Operation) string {
		switch {
		case strings.EqualFold(op.Target, layout.Root):
			return "" // every session makes this folder
		case strings.HasPrefix(op.Target, layout.HashCache), op.Kind == simulated.OpProcessRun:
			return "" // a hash is saved, and a binary is asked for its version, as the age of its last change decides
		case Session(op):
			return "session"
		case op.Process == "swdt-guardian" || op.Process == "swdt-agent.exe":
			return "guardian"
		}
		return ""
	}}
}

// Point identifies one change that a run makes to the machine. The same change has the same Point
// in every run.
type Point struct {
	asker      string
	kind       simulated.Kind
	target     string // the operation's target, without its random parts
	occurrence int
}

func (p Point) String() string {
	return fmt.Sprintf("%s %s %s #%d", p.asker, p.kind, strings.ReplaceAll(p.target, `\`, "/"), p.occurrence)
}

// Strike is one interruption at one point.
type Strike struct {
	Point
	disturbance
	strikes Strikes
}

type disturbance struct {
	name  string
	phase simulated.Phase
	cut   bool // the connection breaks, as it does when the agent is killed
	deals func(op simulated.Operation) simulated.Verdict
}

func (s Strikes) disturbances() []disturbance {
	killed := func(op simulated.Operation) simulated.Verdict {
		return simulated.Verdict{KillCaller: true, Kill: append([]string{op.Process}, s.Dying...)}
	}
	power := func(simulated.Operation) simulated.Verdict { return simulated.PowerCut() }
	fails := func(simulated.Operation) simulated.Verdict { return simulated.Fail(fault.ErrPermission) }
	return []disturbance{
		{"killed before", simulated.Before, true, killed},
		{"killed after", simulated.After, true, killed},
		{"the power is cut after", simulated.After, true, power},
		{"it fails", simulated.Before, false, fails},
	}
}

// Points returns the changes of an undisturbed run, in order.
func (s Strikes) Points(n *Node, run func()) []Point {
	var all []Point
	var mu sync.Mutex
	count := s.counter()
	n.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if p, ours := count.point(op); ours && op.Phase == simulated.Before {
			mu.Lock()
			all = append(all, p)
			mu.Unlock()
		}
		return simulated.Continue()
	})
	run()
	n.Machine.OnOperation(nil)
	return all
}

// Each runs a test for one in oneIn of all points with every kind of strike, or for all of them, as package
// cases chooses.
func (s Strikes) Each(t *testing.T, points []Point, oneIn int, test func(t *testing.T, strike Strike)) {
	t.Helper()
	var all []Strike
	for _, p := range points {
		for _, b := range s.disturbances() {
			all = append(all, Strike{Point: p, disturbance: b, strikes: s})
		}
	}
	for _, strike := range cases.Of(t, all, (len(all)+oneIn-1)/oneIn) {
		t.Run(strike.Point.String()+"/"+strike.name, func(t *testing.T) {
			t.Parallel()
			test(t, strike)
		})
	}
}

// EachInBubble is like Each. Each test runs in a bubble of testing/synctest, whose clock goes on as soon as all
// that runs waits. The test must not use the kernel's network: package memnet has another.
func (s Strikes) EachInBubble(t *testing.T, points []Point, oneIn int, test func(t *testing.T, strike Strike)) {
	t.Helper()
	s.Each(t, points, oneIn, func(t *testing.T, strike Strike) {
		synctest.Test(t, func(t *testing.T) { test(t, strike) })
	})
}

// Strike makes the machine interrupt a run once, at the point of s. The result reports whether the
// interruption has happened.
func (n *Node) Strike(s Strike) *atomic.Bool {
	var struck atomic.Bool
	count := s.strikes.counter()
	n.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		at, ours := count.point(op)
		if !ours || at != s.Point || op.Phase != s.phase || !struck.CompareAndSwap(false, true) {
			return simulated.Continue()
		}
		if s.cut {
			n.Cut()
		}
		return s.deals(op)
	})
	return &struck
}

// Restore ends all strikes and connects again, as the next swdt does.
func (n *Node) Restore() {
	n.t.Helper()
	n.Machine.OnOperation(nil)
	if err := n.Reconnect(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	n.Settle()
}

// counter assigns points to the operations of one run.
type counter struct {
	asker  func(simulated.Operation) string
	random *regexp.Regexp

	mu   sync.Mutex
	seen map[Point]int
}

// counter returns a new counter. The random parts of a target, which the counter removes, are a
// transaction's name, a time and a hash.
func (s Strikes) counter() *counter {
	random := regexp.MustCompile(`\d{8}-\d{6}-[0-9a-f]{8}|\d{4}(-\d{2}){5}|swdt-[0-9a-f]{12}`)
	return &counter{asker: s.Asker, random: random, seen: map[Point]int{}}
}

// point returns the point of the operation. It returns false if Asker returns "" for the operation, or
// if the operation changes nothing.
func (c *counter) point(op simulated.Operation) (Point, bool) {
	p := Point{asker: c.asker(op), kind: op.Kind, target: c.random.ReplaceAllString(op.Target, "ID")}
	if p.asker == "" {
		return p, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if op.Phase == simulated.Before {
		c.seen[p]++
	}
	p.occurrence = c.seen[p]
	return p, op.Seq > 0
}
