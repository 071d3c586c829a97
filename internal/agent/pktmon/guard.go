package pktmon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// stopTries limits how often the packet monitor is asked to stop.
const stopTries = 5

// cleanUpInterval is the longest pause between two tries of a guardian to clean up.
const cleanUpInterval = 5 * time.Second

// endingHolder is the holder that a guardian writes into the capture's lock when it has acquired the lock.
const endingHolder = "swdt, which ends a capture"

// Guard runs a capture from beginning to end, waits until its packets are fetched or KeepFor is
// over, and then removes the guardian service. The agent calls Guard when the agent is started as a
// capture's guardian: after Begin, and again after every crash or boot.
func Guard(ctx context.Context, m Machine, id string) error {
	j, err := readJournal(m.Platform.Files)
	var damaged *damagedError
	if errors.As(err, &damaged) { // a later start could not read the journal either
		return errors.Join(err, guardianOf(m).Remove(ctx))
	}
	if err != nil {
		return err
	}
	if j != nil && j.Plan.ID == id && j.State != captureplan.Done {
		g := &guardian{Machine: m, journal: j, monitor: monitor{m.Platform.Processes, j.Plan.Blind}}
		if err := g.run(ctx); err != nil {
			return err // the service stays registered, so that the SCM or the next session starts the guardian again
		}
	}
	if j != nil && j.Plan.ID == id && !linger(ctx, m.Platform.Files, id) {
		return nil // the machine shuts down: the guardian finishes at the next boot
	}
	return guardianOf(m).Remove(ctx)
}

// guardian runs one capture.
type guardian struct {
	Machine
	*journal
	monitor monitor
	held    platform.Unlocker // the capture's lock; nil while the session holds the lock
	live    *printing
	refused bool      // pktmon refused to start the capture or one of its rounds
	round   time.Time // when this round began; for the first round, when the capture began
}

func (g *guardian) run(ctx context.Context) error {
	defer func() {
		if g.held != nil {
			_ = g.held.Unlock() // the end of this process releases the lock too
		}
	}()
	outcome := captureplan.Outcome{Result: captureplan.Captured, Reason: "the guardian was interrupted"}
	if g.State == captureplan.Prepared {
		outcome = g.capture(ctx)
	}
	// ctx may have ended, for example because the machine shuts down, and this ended the capture.
	// The clean-up must run to its end nevertheless, so it gets a context of its own. If the
	// clean-up fails after ctx has ended, it is not retried now: the next start of the guardian
	// continues it.
	uncut, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	return wait.Condition{
		Name:     "the clean-up after the capture",
		Interval: pollInterval, MaxInterval: cleanUpInterval,
		Limit: endLimit,
		Look:  func(context.Context) error { return g.finish(uncut, outcome) },
	}.Wait(ctx)
}

// finish stops the capture, removes swdt's filters and records the outcome; the packets stay. It
// may be called again after an error: a disk that was full may have space again.
func (g *guardian) finish(ctx context.Context, outcome captureplan.Outcome) error {
	if g.State != captureplan.Prepared {
		noted := g.enter(captureplan.Stopping, outcome.Reason)
		kept, err := g.clear(ctx)
		if err != nil {
			return err
		}
		if noted != nil {
			return noted
		}
		outcome.Kept = kept
	}
	done := captureplan.Event{State: captureplan.Done, Message: outcome.Reason, Outcome: &outcome, Rounds: g.Rounds}
	if err := (&journal{Plan: g.Plan, Event: done}).write(g.Platform.Files); err != nil {
		return err
	}
	g.Event = done
	return nil
}

// enter records a state before its actions begin.
func (g *guardian) enter(s captureplan.State, message string) error {
	g.Event = captureplan.Event{State: s, Message: message, Rounds: g.Rounds}
	return g.write(g.Platform.Files)
}

// capture captures packets until something ends the capture. The returned outcome has the reason
// for the end.
func (g *guardian) capture(ctx context.Context) captureplan.Outcome {
	if refused, err := g.othersFirst(ctx); err != nil {
		return captureplan.Outcome{Result: captureplan.Failed, Reason: err.Error()}
	} else if refused != nil {
		return *refused
	}
	if g.sessionReleased() {
		return captureplan.Outcome{Result: captureplan.Captured, Reason: "it was released before it began"}
	}
	if err := g.begin(ctx); err != nil {
		return captureplan.Outcome{Result: captureplan.Failed, Reason: err.Error()}
	}
	reason, err := g.wait(ctx)
	if err != nil {
		return captureplan.Outcome{Result: captureplan.Failed, Reason: err.Error()}
	}
	// For a live capture, g.wait has already returned the reason.
	if ours, err := g.isRunning(ctx); err == nil && !ours && !g.Plan.Live {
		reason += "; before that, " + ErrEndedByOther.Error()
	}
	return captureplan.Outcome{Result: captureplan.Captured, Reason: reason}
}

// othersFirst detects a capture and filters of other programs. If there are any and the plan does
// not have Force, it returns a Refused outcome. If the plan has Force, it ends the capture and
// removes all filters. If the only filters are left over from swdt, it removes them in any case. It
// returns nil if the capture may begin.
func (g *guardian) othersFirst(ctx context.Context) (*captureplan.Outcome, error) {
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
		refused := &captureplan.Outcome{Result: captureplan.Refused, Reason: "another program captures",
			Filters: others}
		if running {
			refused.Running = text
		}
		return refused, nil
	}
	if err := g.enter(captureplan.Filtering, "end the capture of another program"); err != nil {
		return nil, err
	}
	if running {
		if _, err := g.monitor.run(ctx, "stop"); err != nil {
			return nil, fmt.Errorf("end another program's capture: %w", err)
		}
	}
	if _, err := g.monitor.run(ctx, "filter", "remove"); err != nil {
		return nil, fmt.Errorf("remove another program's filters: %w", err)
	}
	return nil, nil
}

func (g *guardian) begin(ctx context.Context) error {
	if err := g.enter(captureplan.Filtering, ""); err != nil {
		return err
	}
	for _, filter := range g.Plan.Filters {
		if _, err := g.monitor.run(ctx, append([]string{"filter", "add", captureplan.FilterName + g.Plan.ID},
			filter...)...); err != nil {
			return err
		}
	}
	if err := g.enter(captureplan.Starting, ""); err != nil {
		return err
	}
	g.Began = time.Now()
	if g.Plan.Live {
		live, err := startPrinting(ctx, g.Platform, g.Plan)
		if err != nil {
			return err
		}
		g.live = live
	} else if _, err := g.monitor.run(ctx, g.Plan.StartOf(1)...); err != nil {
		g.refused = true
		return err
	}
	g.round = time.Now()
	return g.enter(captureplan.Capturing, "")
}

// wait waits until the capture must end, and returns the reason.
func (g *guardian) wait(ctx context.Context) (string, error) {
	for {
		if g.Plan.For > 0 && time.Since(g.Began) >= g.Plan.For {
			return "its time was over", nil
		}
		if g.sessionReleased() {
			return "it was released", nil
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

// sessionReleased reports whether the session has released the capture's lock. From then on the guardian holds the
// lock, until the clean-up is done.
func (g *guardian) sessionReleased() bool {
	if g.held == nil {
		// An error means that the session still holds the lock, or that the disk fails. If the disk
		// fails, only the end of Plan.For or of the service ends the capture.
		g.held, _ = g.Platform.Files.Lock(layout.CaptureLock, []byte(endingHolder))
	}
	return g.held != nil
}

// clear stops the running capture if it is swdt's, and removes swdt's filters. The result `kept` is
// a message about filters that clear had to leave, or "".
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
		return fmt.Sprintf("%d filters of swdt remain, since another program has added filters and pktmon can only remove "+
			"all filters at once; run `pktmon filter remove` if no program needs them", len(ours)), nil
	}
	if _, err := g.monitor.run(ctx, "filter", "remove"); err != nil {
		return "", err
	}
	if ours, _, err = g.monitor.filters(ctx); err == nil && len(ours) > 0 {
		err = fmt.Errorf("pktmon filter remove left %d filters", len(ours))
	}
	return "", err
}

// stop runs `pktmon stop` until pktmon reports that swdt's capture does not run. For a blind plan,
// it runs `pktmon stop` once.
func (g *guardian) stop(ctx context.Context) error {
	if g.Plan.Blind {
		if g.refused { // perhaps another program captures: do not stop its capture
			return nil
		}
		_, err := g.monitor.run(ctx, "stop")
		var ended *captureplan.CommandError
		if errors.As(err, &ended) {
			return nil // pktmon refused to stop, since nothing captured
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
			var ended *captureplan.CommandError
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

// isRunning reports whether swdt's capture runs according to pktmon. For a blind plan it returns
// true, since the node's pktmon cannot report whether it captures.
func (g *guardian) isRunning(ctx context.Context) (bool, error) {
	text, running, err := g.monitor.status(ctx)
	return g.Plan.Blind || running && g.isOurs(text), err
}

// isOurs reports whether a status of pktmon describes swdt's capture. The status of a capture to a
// log file has the log file's name, which begins with the plan's ID. A live capture has no log
// file.
func (g *guardian) isOurs(status string) bool {
	if !g.Plan.Live {
		return strings.Contains(strings.ToLower(status), g.Plan.ID+".")
	}
	return !strings.Contains(strings.ToLower(status), ".etl")
}
