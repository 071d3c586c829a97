package capture

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// DefaultRound is the default length of a round.
const DefaultRound = 2 * time.Second

// Round has the packets captured in one round.
type Round struct {
	Export Export
	// Until is a time of the node's clock: all packets of later rounds were captured after Until.
	// Until is zero if that time is unknown.
	Until time.Time
}

// fetching fetches the rounds of a capture while it goes on.
type fetching struct {
	cancel context.CancelFunc
	rounds chan captureplan.Rounds // receives the closed rounds; the channel is closed after the last one
	gone   chan struct{}
	err    error // set before the channel gone is closed
}

// fetchRounds fetches each round after the round is closed. If a fetch fails, the capture
// ends.
func (o Options) fetchRounds(ctx context.Context, n *node.Node, d Dialect, id string,
	fail context.CancelFunc) *fetching {
	ctx, cancel := context.WithCancel(ctx)
	f := &fetching{cancel: cancel, rounds: make(chan captureplan.Rounds), gone: make(chan struct{})}
	r := fetcher{exporter: exporter{n, d, ui.Discard{}}, id: id, folder: o.Folder, fetched: o.Fetched}
	go func() {
		defer close(f.gone)
		if f.err = r.fetchAll(ctx, f.rounds); f.err != nil && ctx.Err() == nil {
			fail()
		}
	}()
	return f
}

// closed reports closed rounds to the goroutine that fetches them. It waits until the earlier
// rounds were fetched. The node goes on capturing meanwhile.
func (f *fetching) closed(ctx context.Context, rounds captureplan.Rounds) {
	select {
	case f.rounds <- rounds:
	case <-f.gone:
	case <-ctx.Done():
	}
}

func (f *fetching) end(context.Context) error {
	defer f.cancel()
	close(f.rounds)
	<-f.gone
	return f.err
}

func (f *fetching) because(err error) error {
	f.cancel()
	<-f.gone
	if f.err != nil && !errors.Is(f.err, context.Canceled) {
		return f.err
	}
	return err
}

// fetcher downloads rounds.
type fetcher struct {
	exporter
	id, folder string
	fetched    func(Round) error
	last       int // number of the last round that was fetched
}

// fetchAll fetches each round after the channel has reported that the round is closed. When the
// channel itself is closed, fetchAll fetches the rest: the round that the end of the capture has
// closed, and rounds that the node's guardian did not report because the guardian ended early.
func (f *fetcher) fetchAll(ctx context.Context, closed <-chan captureplan.Rounds) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case rounds, more := <-closed:
			if !more {
				return f.fetchRest(ctx)
			}
			for f.last < rounds.Closed {
				until := time.Time{}
				if f.last+1 == rounds.Closed {
					until = rounds.Until
				}
				if err := f.fetchNext(ctx, until); err != nil {
					return err
				}
			}
		}
	}
}

func (f *fetcher) fetchRest(ctx context.Context) error {
	for {
		_, err := f.node.Files.Stat(ctx, &agentv1.StatRequest{Path: captureplan.RoundFile(f.id, f.last+1)})
		if errors.Is(err, fault.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for packets on the node: %w", err)
		}
		if err := f.fetchNext(ctx, time.Time{}); err != nil {
			return err
		}
	}
}

func (f *fetcher) fetchNext(ctx context.Context, until time.Time) error {
	f.last++
	log := captureplan.RoundFile(f.id, f.last)
	export, err := f.export(ctx, log, filepath.Join(f.folder, strconv.Itoa(f.last)+"."))
	if err != nil {
		return err
	}
	if err := f.forget(ctx, log); err != nil {
		return err
	}
	return f.fetched(Round{Export: export, Until: until})
}
