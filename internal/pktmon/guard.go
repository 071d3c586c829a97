package pktmon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// stopTries bounds how often a packet monitor is told to stop.
const stopTries = 5

// endingHolder is what a guardian writes into the lock that it has taken over.
const endingHolder = "swdt, which ends a capture"

// Guard owns a capture from its beginning to its end, waits until its packets are
// fetched or KeepFor is over, and then removes the guardian service. It is what the agent does when it is started as a capture's
// guardian, after Begin and again after every crash or boot.
func Guard(ctx context.Context, m Machine, id string) error {
	j, err := readJournal(m.Host.Files)
	if err != nil {
		return err
	}
	if j != nil && j.Plan.ID == id && j.State != Done {
		g := &guardian{Machine: m, journal: j, monitor: monitor{m.Host.Processes, j.Plan.Blind}}
		if err := g.run(ctx); err != nil {
			return err // stay registered: the SCM, the next boot, or contact, tries again
		}
	}
	if j != nil && j.Plan.ID == id && !linger(ctx, m.Host.Files, id) {
		return nil // the machine shuts down: the rest is for the next boot
	}
	return theGuardian(m).Remove(ctx)
}

// guardian is one capture at work.
type guardian struct {
	Machine
	*journal
	monitor monitor
	held    host.Unlocker // the session's lock, once the session has let go of it
	live    *printing
	refused bool      // pktmon did not begin
	round   time.Time // when this round began, for the first the capture
}

func (g *guardian) run(ctx context.Context) error {
	defer func() {
		if g.held != nil {
			_ = g.held.Unlock() // it ends with this process, too
		}
	}()
	outcome := Outcome{Result: Captured, Reason: "the guardian was interrupted"}
	if g.State == Prepared {
		outcome = g.capture(ctx)
	}
	// Whatever has ended the capture, the machine's shutdown too, must not end this.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	if g.State != Prepared {
		noted := g.enter(Stopping, outcome.Reason)
		kept, err := g.clear(clean)
		if err != nil {
			return err
		}
		if noted != nil {
			return noted
		}
		outcome.Kept = kept
	}
	g.Event = Event{State: Done, Message: outcome.Reason, Outcome: &outcome, Rounds: g.Rounds}
	return g.write(g.Host.Files)
}

// enter notes a state before what it announces is done.
func (g *guardian) enter(s State, message string) error {
	g.Event = Event{State: s, Message: message, Rounds: g.Rounds}
	return g.write(g.Host.Files)
}

// capture captures until something ends it, and says what did.
func (g *guardian) capture(ctx context.Context) Outcome {
	if refused, err := g.othersFirst(ctx); err != nil {
		return Outcome{Result: Failed, Reason: err.Error()}
	} else if refused != nil {
		return *refused
	}
	if g.abandoned() {
		return Outcome{Result: Captured, Reason: "it was let go before it began"}
	}
	if err := g.begin(ctx); err != nil {
		return Outcome{Result: Failed, Reason: err.Error()}
	}
	reason, err := g.wait(ctx)
	if err != nil {
		return Outcome{Result: Failed, Reason: err.Error()}
	}
	if ours, err := g.isRunning(ctx); err == nil && !ours && !g.Plan.Live { // a live one has told
		reason += "; before that, " + ErrTaken.Error()
	}
	return Outcome{Result: Captured, Reason: reason}
}

// othersFirst looks for somebody else's capture and filters, and ends them where
// that is asked for.
func (g *guardian) othersFirst(ctx context.Context) (*Outcome, error) {
	text, running, err := g.monitor.status(ctx)
	if err != nil {
		return nil, err
	}
	ours, others, err := g.monitor.filters(ctx)
	if err != nil {
		return nil, err
	}
	if !running && len(others) == 0 && len(ours) == 0 {
		return nil, nil
	}
	if (running || len(others) > 0) && !g.Plan.Force {
		refused := &Outcome{Result: Refused, Reason: "somebody else captures", Filters: others}
		if running {
			refused.Running = text
		}
		return refused, nil
	}
	if err := g.enter(Filtering, "end what somebody else captures"); err != nil {
		return nil, err
	}
	if running {
		if _, err := g.monitor.run(ctx, "stop"); err != nil {
			return nil, fmt.Errorf("end somebody else's capture: %w", err)
		}
	}
	if _, err := g.monitor.run(ctx, "filter", "remove"); err != nil {
		return nil, fmt.Errorf("remove somebody else's filters: %w", err)
	}
	return nil, nil
}

func (g *guardian) begin(ctx context.Context) error {
	if err := g.enter(Filtering, ""); err != nil {
		return err
	}
	for _, filter := range g.Plan.Filters {
		if _, err := g.monitor.run(ctx, append([]string{"filter", "add", FilterName + g.Plan.ID}, filter...)...); err != nil {
			return err
		}
	}
	if err := g.enter(Starting, ""); err != nil {
		return err
	}
	g.Began = time.Now()
	if g.Plan.Live {
		live, err := startPrinting(ctx, g.Host, g.Plan)
		if err != nil {
			return err
		}
		g.live = live
	} else if _, err := g.monitor.run(ctx, g.Plan.startOf(1)...); err != nil {
		g.refused = true
		return err
	}
	g.round = time.Now()
	return g.enter(Capturing, "")
}

// wait returns why the capture is over.
func (g *guardian) wait(ctx context.Context) (string, error) {
	for {
		if g.Plan.For > 0 && time.Since(g.Began) >= g.Plan.For {
			return "its time was over", nil
		}
		if g.abandoned() {
			return "it was let go", nil
		}
		if g.live != nil {
			select {
			case <-g.live.ended:
				return g.live.result()
			default:
			}
		}
		if err := g.turn(ctx); err != nil {
			return "", err
		}
		if pause(ctx) != nil {
			return "the service that guards it was stopped", nil
		}
	}
}

// abandoned is whether the session has let go of the capture; the guardian then
// holds it, until all is cleared away.
func (g *guardian) abandoned() bool {
	if g.held == nil {
		// An error is another's lock, or a disk that fails: the capture's own end
		// then ends it.
		g.held, _ = g.Host.Files.Lock(layout.CaptureLock, []byte(endingHolder))
	}
	return g.held != nil
}

// clear stops the capture if it is ours and removes our filters.
func (g *guardian) clear(ctx context.Context) (kept string, err error) {
	if g.live != nil {
		g.live.stop()
	}
	if err := g.stop(ctx); err != nil {
		return "", err
	}
	ours, others, err := g.monitor.filters(ctx)
	switch {
	case err != nil || len(ours) == 0:
		return "", err
	case len(others) > 0:
		return fmt.Sprintf("%d filters of swdt's are left, for somebody added others meanwhile and pktmon removes all or none: "+
			"`pktmon filter remove` when they are not needed", len(ours)), nil
	}
	if _, err := g.monitor.run(ctx, "filter", "remove"); err != nil {
		return "", err
	}
	if ours, _, err = g.monitor.filters(ctx); err == nil && len(ours) > 0 {
		err = fmt.Errorf("pktmon filter remove left %d filters", len(ours))
	}
	return "", err
}

// stop tells pktmon to stop until it says that our capture does not run.
func (g *guardian) stop(ctx context.Context) error {
	if g.Plan.Blind {
		if g.refused { // perhaps because somebody else captures
			return nil
		}
		_, err := g.monitor.run(ctx, "stop")
		var ended *CommandError
		if errors.As(err, &ended) {
			return nil // nothing ran
		}
		return err
	}
	for range stopTries {
		text, running, err := g.monitor.status(ctx)
		if err != nil {
			return err
		}
		if !running || !g.isOurs(text) {
			return nil
		}
		if _, err := g.monitor.run(ctx, "stop"); err != nil {
			var ended *CommandError
			if !errors.As(err, &ended) {
				return err
			}
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return errors.New("pktmon stop does not end the capture")
}

// isRunning is whether pktmon says that our capture runs, or cannot say.
func (g *guardian) isRunning(ctx context.Context) (bool, error) {
	text, running, err := g.monitor.status(ctx)
	return g.Plan.Blind || running && g.isOurs(text), err
}

// isOurs goes by the log file that a session names. A live one has none.
func (g *guardian) isOurs(status string) bool {
	if !g.Plan.Live {
		return strings.Contains(strings.ToLower(status), g.Plan.ID+".")
	}
	return !strings.Contains(strings.ToLower(status), ".etl")
}
