package pktmon

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxWaiting is how many closed rounds may wait to be fetched. With more of them
// the current one goes on instead, which loses nothing while its log has room.
const maxWaiting = 2

// ErrTaken: somebody else has ended our capture while it went on.
var ErrTaken = errors.New("somebody else ended the capture with pktmon")

// turn closes this round, where it is old enough, and begins the next. pktmon can
// hand out no packets before it stops; so it stands for as short as can be.
func (g *guardian) turn(ctx context.Context) error {
	if g.Plan.Round == 0 || time.Since(g.round) < g.Plan.Round || g.waiting() >= maxWaiting {
		return nil
	}
	ours, err := g.isRunning(ctx)
	if err != nil {
		return err
	}
	if !ours {
		return ErrTaken
	}
	until := time.Now()
	if _, err := g.monitor.run(ctx, "stop"); err != nil {
		return fmt.Errorf("end a round of the capture: %w", err)
	}
	if _, err := g.monitor.run(ctx, g.Plan.startOf(g.Closed+2)...); err != nil {
		g.refused = true
		return fmt.Errorf("begin the next round of the capture: %w", err)
	}
	g.round = time.Now()
	g.Rounds = Rounds{Closed: g.Closed + 1, Until: until, Missed: g.Missed + g.round.Sub(until)}
	return g.enter(Capturing, "")
}

// waiting is how many rounds nobody has fetched yet: who fetches one removes it.
func (g *guardian) waiting() (count int) {
	for round := g.Closed; round > 0 && g.exists(RoundFile(g.Plan.ID, round)); round-- {
		count++
	}
	return count
}

func (g *guardian) exists(path string) bool {
	_, err := g.Host.Files.Stat(path)
	return err == nil
}
