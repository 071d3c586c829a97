package pktmon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/wire/captureplan"
)

// maxWaiting is how many closed rounds may wait to be fetched. A round is a part of a capture with
// its own log file. While maxWaiting rounds wait, the current round continues; no packet is lost as
// long as the log of the current round has room.
const maxWaiting = 2

// ErrEndedByOther reports that another program has ended swdt's capture.
var ErrEndedByOther = errors.New("another program ended the capture with pktmon")

// turn closes the current round and begins the next one, if the current round is old enough and
// fewer than maxWaiting rounds wait. pktmon releases a round's packets only after pktmon was
// stopped, so turn stops pktmon as briefly as possible.
func (g *guardian) turn(ctx context.Context) error {
	if g.Plan.Round == 0 || time.Since(g.round) < g.Plan.Round || g.waiting() >= maxWaiting {
		return nil
	}
	ours, err := g.isRunning(ctx)
	if err != nil {
		return err
	}
	if !ours {
		return ErrEndedByOther
	}
	until := time.Now()
	if _, err := g.monitor.run(ctx, "stop"); err != nil {
		return fmt.Errorf("end a round of the capture: %w", err)
	}
	if _, err := g.monitor.run(ctx, g.Plan.StartOf(g.Closed+2)...); err != nil {
		g.refused = true
		return fmt.Errorf("begin the next round of the capture: %w", err)
	}
	g.round = time.Now()
	g.Rounds = captureplan.Rounds{Closed: g.Closed + 1, Until: until, Missed: g.Missed + g.round.Sub(until)}
	return g.enter(captureplan.Capturing, "")
}

// waiting returns the number of closed rounds that are still on the node. A session removes each
// round that it has fetched.
func (g *guardian) waiting() (count int) {
	for round := g.Closed; round > 0 && g.exists(captureplan.RoundFile(g.Plan.ID, round)); round-- {
		count++
	}
	return count
}

func (g *guardian) exists(path string) bool {
	_, err := g.Platform.Files.Stat(path)
	return err == nil
}
