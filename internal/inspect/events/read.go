package events

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// pollInterval is the time between two queries of a followed channel. It is long, since each
	// query starts a program on the node.
	pollInterval = 2 * time.Second
	// batchSize is the largest number of events in a batch. Only the batch of the last events
	// (Query.Last) may be larger.
	batchSize = 256
)

// Programs is the Processes client of a node, which runs programs there.
type Programs = agentv1.ProcessesClient

// NoEventLogError reports a machine without an event log, such as Wine.
type NoEventLogError struct{ Err error }

func (e *NoEventLogError) Error() string {
	if errors.Is(e.Err, fault.ErrNotExist) {
		return "read the event log: the node has no wevtutil.exe"
	}
	return "read the event log: the node's wevtutil lists no channels; on Windows, check that the service EventLog " +
		"runs (Wine has no event log)"
}
func (e *NoEventLogError) Unwrap() error { return fault.ErrNotSupported }

// Reader reads one node's event log.
type Reader struct {
	programs Programs
	present  []string
}

// Open returns a Reader for the node, after it has listed the node's channels.
func Open(ctx context.Context, programs Programs) (*Reader, error) {
	var list bytes.Buffer
	err := run(ctx, programs, []string{"el"}, &list)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, &NoEventLogError{Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("list the event channels: %w", err)
	}
	r := &Reader{programs: programs}
	for line := range strings.Lines(list.String()) {
		if line = strings.TrimSpace(line); line != "" {
			r.present = append(r.present, line)
		}
	}
	if len(r.present) == 0 {
		return nil, &NoEventLogError{}
	}
	return r, nil
}

// Channel is one channel of the node with the ids of its wanted events.
type Channel struct {
	reader *Reader
	chosen selected
}

// Name returns the name of the channel.
func (c Channel) Name() string { return c.chosen.channel }

// Channels returns the channels that the names select. Each channel is returned once, even if
// several names select it.
func (r *Reader) Channels(names []string) ([]Channel, error) {
	var all []Channel
	for _, name := range names {
		chosen, err := choose(name, r.present)
		if err != nil {
			return nil, err
		}
		for _, s := range chosen {
			at := slices.IndexFunc(all, func(c Channel) bool { return c.chosen.channel == s.channel })
			if at < 0 {
				all = append(all, Channel{r, s})
				continue
			}
			all[at].chosen = all[at].chosen.union(s)
		}
	}
	return all, nil
}

// Emit receives the events of a channel in the order in which they were logged. caughtUp
// reports whether all stored events have been passed to Emit.
type Emit func(batch []Event, caughtUp bool) error

// Position is the position up to which a channel has been read; the zero value is the beginning of
// the channel.
type Position struct {
	last     uint64 // number of the last record that was emitted, or that was stored before following began
	caughtUp bool   // reports whether all stored events were emitted
}

// Read emits the channel's stored events. If q.Follow is set, Read then emits new events until ctx
// ends.
func (c Channel) Read(ctx context.Context, q Query, emit Emit) error {
	return c.Resume(ctx, q, &Position{}, emit)
}

// Resume is like Read, but begins at the given position. Resume updates the position, so that the
// caller can continue after an error.
func (c Channel) Resume(ctx context.Context, q Query, at *Position, emit Emit) error {
	if !at.caughtUp {
		var newest uint64
		if q.Follow {
			var err error
			if newest, err = c.newest(ctx); err != nil {
				return err
			}
		}
		if err := c.stored(ctx, q, at, emit); err != nil {
			return err
		}
		// c.stored asked wevtutil later than c.newest did, so c.stored may have emitted events whose
		// numbers are higher than newest.
		at.last, at.caughtUp = max(at.last, newest), true
		if err := emit(nil, true); err != nil {
			return err
		}
	}
	if !q.Follow {
		return nil
	}
	return c.follow(ctx, q, at, emit)
}

// newest returns the number of the channel's last record. Records that are logged later have
// higher numbers.
func (c Channel) newest(ctx context.Context) (number uint64, err error) {
	all := selected{channel: c.chosen.channel}
	err = c.query(ctx, Query{Last: 1}.arguments(all, span{})[0], func(e Event) error {
		number = e.Record
		return nil
	})
	return number, err
}

// stored emits the stored events after the position.
func (c Channel) stored(ctx context.Context, q Query, at *Position, emit Emit) error {
	if q.Last == 0 {
		return nil
	}
	keep := q.Last > 0
	var batch []Event
	give := func(highest uint64) error {
		given := batch
		batch = nil
		if err := emit(given, false); err != nil {
			return err
		}
		at.last = max(at.last, highest)
		return nil
	}
	last, err := c.ask(ctx, q, at.last, func(e Event) error {
		if q.Wants != nil && !q.Wants(e) {
			return nil
		}
		batch = append(batch, e)
		switch {
		// This case occurs only with Wants. It drops all but the last events.
		case keep && len(batch) > 2*q.Last:
			batch = slices.Delete(batch, 0, len(batch)-q.Last)
		case !keep && len(batch) == batchSize:
			return give(e.Record)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if q.newestFirst(0) {
		slices.Reverse(batch)
	}
	if keep {
		batch = batch[max(0, len(batch)-q.Last):]
	}
	return give(last)
}

func (c Channel) follow(ctx context.Context, q Query, at *Position, emit Emit) error {
	q.Since, q.Last = time.Time{}, -1
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		var batch []Event
		newest, err := c.ask(ctx, q, at.last, func(e Event) error {
			if q.Wants != nil && !q.Wants(e) {
				return nil
			}
			if batch = append(batch, e); len(batch) < batchSize {
				return nil
			}
			given := batch
			batch = nil
			if err := emit(given, false); err != nil {
				return err
			}
			at.last = max(at.last, e.Record)
			return nil
		})
		if err != nil {
			return err
		}
		if err := emit(batch, true); err != nil {
			return err
		}
		at.last = max(at.last, newest)
	}
}

// ask queries the events with record numbers greater than after. It passes every event to the given
// function, and returns the highest record number (0 if there are no events).
func (c Channel) ask(ctx context.Context, q Query, after uint64, each func(Event) error) (highest uint64, err error) {
	count := func(e Event) error {
		highest = max(highest, e.Record)
		return each(e)
	}
	switch queries := q.arguments(c.chosen, span{after: after}); len(queries) {
	case 0: // no event can match
	case 1:
		err = c.query(ctx, queries[0], count)
	default:
		err = c.merge(ctx, q, after, count)
	}
	return highest, err
}

// merge passes on the events of several queries in the order of one query. It asks for no record that is logged after
// its begin: a query that has ended would miss it, and the next call of ask begins behind it.
func (c Channel) merge(ctx context.Context, q Query, after uint64, each func(Event) error) error {
	newest, err := c.newest(ctx)
	if err != nil || newest <= after {
		return err
	}
	var all []Event
	for _, args := range q.arguments(c.chosen, span{after: after, upTo: newest}) {
		if err := c.query(ctx, args, func(e Event) error {
			all = append(all, e)
			return nil
		}); err != nil {
			return err
		}
	}
	slices.SortFunc(all, func(a, b Event) int { return cmp.Compare(a.Record, b.Record) })
	if q.newestFirst(after) {
		slices.Reverse(all)
		all = all[:min(q.Last, len(all))]
	}
	for _, e := range all {
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

func (c Channel) query(ctx context.Context, args []string, each func(Event) error) error {
	if err := run(ctx, c.reader.programs, args, &decoder{each: each}); err != nil {
		return fmt.Errorf("read event channel %s: %w", c.chosen.channel, err)
	}
	return nil
}

// maxErrorOutput is the number of bytes of wevtutil's stderr that are kept.
const maxErrorOutput = 4 << 10

func run(ctx context.Context, programs Programs, args []string, out io.Writer) error {
	stderr := bounded.Head{Most: maxErrorOutput}
	code, err := command.Run(ctx, programs, &agentv1.RunCommand{Path: "wevtutil.exe", Args: args},
		command.Streams{Stdout: out, Stderr: &stderr})
	if err != nil {
		return err
	}
	if code != 0 {
		return &command.FailedError{Command: "wevtutil " + strings.Join(args, " "), ExitCode: code,
			Stderr: stderr.String()}
	}
	return nil
}
