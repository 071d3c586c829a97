package capture

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/pktmon"
	"github.com/swdt-dev/swdt/internal/ui"
)

// DefaultRound is how long a round is where nobody says.
const DefaultRound = 2 * time.Second

// Round is what was captured in one.
type Round struct {
	Export Export
	// Until is a time of the node's clock: packets of later rounds are younger. Zero:
	// that is not known.
	Until time.Time
}

// fetching is a capture whose rounds are being fetched.
type fetching struct {
	cancel context.CancelFunc
	rounds chan pktmon.Rounds // that are closed; itself closed when there will be no more
	gone   chan struct{}
	err    error // once gone is closed
}

// fetchRounds fetches each round once it is closed. Should that fail, the capture
// ends.
func (o Options) fetchRounds(ctx context.Context, n *node.Node, d Dialect, id string, fail context.CancelFunc) *fetching {
	ctx, cancel := context.WithCancel(ctx)
	f := &fetching{cancel: cancel, rounds: make(chan pktmon.Rounds), gone: make(chan struct{})}
	r := fetcher{exporter: exporter{n, d, ui.Discard{}}, id: id, folder: o.Folder, fetched: o.Fetched}
	go func() {
		defer close(f.gone)
		if f.err = r.fetchAll(ctx, f.rounds); f.err != nil && ctx.Err() == nil {
			fail()
		}
	}()
	return f
}

// closed waits until the rounds before were fetched; the node does not wait.
func (f *fetching) closed(ctx context.Context, rounds pktmon.Rounds) {
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

// fetcher brings rounds here.
type fetcher struct {
	exporter
	id, folder string
	fetched    func(Round) error
	last       int // that was fetched
}

// fetchAll fetches rounds as they are closed, and when there will be no more, those
// that are there: the one that the end of the capture has closed, and one that a
// guardian which died could not tell of.
func (f *fetcher) fetchAll(ctx context.Context, closed <-chan pktmon.Rounds) error {
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
		_, err := f.node.Files.Stat(ctx, &agentv1.StatRequest{Path: pktmon.RoundFile(f.id, f.last+1)})
		if errors.Is(err, host.ErrNotExist) {
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
	log := pktmon.RoundFile(f.id, f.last)
	export, err := f.export(ctx, log, filepath.Join(f.folder, strconv.Itoa(f.last)+"."))
	if err != nil {
		return err
	}
	if err := f.forget(ctx, log); err != nil {
		return err
	}
	return f.fetched(Round{Export: export, Until: until})
}
