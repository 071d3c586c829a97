package trace_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/trace"
)

// oneIn is the number of points of which one is interrupted.
const oneIn = 17

// Wherever `on` is interrupted, the next `on` completes it, and `off` restores exactly
// the previous state.
func TestAnOnThatIsInterruptedAnywhere(t *testing.T) {
	l := newLab(t)
	points := nodetest.OfTransactions().Points(l.Node, func() { l.mustOn(options()) })
	if len(points) < 40 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	t.Logf("%d points", len(points))
	nodetest.OfTransactions().EachInBubble(t, points, oneIn, func(t *testing.T, strike nodetest.Strike) {
		l := newLab(t)
		before := l.state()
		struck := l.Strike(strike)
		results, err := l.on(options())
		if !struck.Load() {
			t.Fatalf("it never came to this point: %v\n%s", err, table(results))
		}
		l.Restore()
		l.mustOn(options())
		results, err = l.on(options())
		nothing(t, results, err)
		if s := l.status(); s["containerd"].State != trace.IsOn || s["kubelet"].State != trace.IsOn {
			t.Errorf("%+v", s)
		}
		l.mustOff(options())
		l.isAsBefore(before)
	})
}

// Wherever `on` is interrupted, `off` alone restores exactly the previous state.
func TestOffUndoesAnInterruptedOn(t *testing.T) {
	l := newLab(t)
	points := nodetest.OfTransactions().Points(l.Node, func() { l.mustOn(options("containerd")) })
	nodetest.OfTransactions().EachInBubble(t, points, oneIn, func(t *testing.T, strike nodetest.Strike) {
		l := newLab(t)
		before := l.state()
		l.Strike(strike)
		_, _ = l.on(options("containerd"))
		l.Restore()
		l.mustOff(options())
		l.isAsBefore(before)
	})
}

// Wherever `off`, or a change of level, is interrupted, the next `off` completes it.
func TestAnOffThatIsInterruptedAnywhere(t *testing.T) {
	louder := options()
	louder.ContainerdLevel, louder.KubeletVerbosity = "trace", "6"
	for name, command := range map[string]func(l *lab) error{
		"off":    func(l *lab) error { _, err := l.off(options()); return err },
		"louder": func(l *lab) error { _, err := l.on(louder); return err },
	} {
		l := newLab(t)
		l.mustOn(options())
		points := nodetest.OfTransactions().Points(l.Node, func() {
			if err := command(l); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%s: %d points", name, len(points))
		t.Run(name, func(t *testing.T) {
			nodetest.OfTransactions().EachInBubble(t, points, oneIn, func(t *testing.T, strike nodetest.Strike) {
				l := newLab(t)
				before := l.state()
				l.mustOn(options())
				l.Strike(strike)
				_ = command(l)
				l.Restore()
				l.mustOff(options())
				l.isAsBefore(before)
				results, err := l.off(options())
				nothing(t, results, err)
			})
		})
	}
}
