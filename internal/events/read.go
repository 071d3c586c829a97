package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/command"
	"github.com/swdt-dev/swdt/internal/host"
)

const (
	// pause is between two looks at a channel that is followed: each starts a
	// program on the node.
	pause = 2 * time.Second
	// batchSize is how many events are given at a time.
	batchSize = 256
)

// Programs runs programs on a node: its Processes client.
type Programs = agentv1.ProcessesClient

// NoEventLogError: the machine has no event log, as Wine.
type NoEventLogError struct{ Err error }

func (e *NoEventLogError) Error() string {
	if errors.Is(e.Err, host.ErrNotExist) {
		return "read the event log: the node has no wevtutil.exe"
	}
	return "read the event log: the node's wevtutil lists no channels; Wine's does not, a Windows whose service EventLog runs does"
}
func (e *NoEventLogError) Unwrap() error { return host.ErrNotSupported }

// Reader reads one node's event log.
type Reader struct {
	programs Programs
	present  []string
}

// Open asks which channels the node has.
func Open(ctx context.Context, programs Programs) (*Reader, error) {
	var list bytes.Buffer
	err := run(ctx, programs, []string{"el"}, &list)
	if errors.Is(err, host.ErrNotExist) {
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

// Channel is one channel of the node, and which of its events are wanted.
type Channel struct {
	reader *Reader
	chosen selected
}

// Name of the channel.
func (c Channel) Name() string { return c.chosen.channel }

// Channels finds those that the names mean, each once: names may overlap.
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
			all[at].chosen = all[at].chosen.and(s)
		}
	}
	return all, nil
}

// Emit gets events in the order of their channel; stands says that those which
// stood there have all been given.
type Emit func(batch []Event, stands bool) error

// Position is how far a channel has been read; zero: not at all.
type Position struct {
	last   uint64 // the number of the record that was given last, or that is not new
	stands bool   // all that stood there was given
}

// Read gives the channel's events, and with Follow those that come until ctx ends.
func (c Channel) Read(ctx context.Context, q Query, emit Emit) error {
	return c.Resume(ctx, q, &Position{}, emit)
}

// Resume is Read that after an error goes on at the position.
func (c Channel) Resume(ctx context.Context, q Query, at *Position, emit Emit) error {
	if !at.stands {
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
		// What was logged between the two questions was given already.
		at.last, at.stands = max(at.last, newest), true
		if err := emit(nil, true); err != nil {
			return err
		}
	}
	if !q.Follow {
		return nil
	}
	return c.follow(ctx, q, at, emit)
}

// newest is the number of the channel's last record: whatever it is, what is new
// has a higher one.
func (c Channel) newest(ctx context.Context) (uint64, error) {
	var number uint64
	_, err := c.ask(ctx, Query{Last: 1}, 0, func(e Event) error {
		number = e.Record
		return nil
	})
	return number, err
}

// stored gives what stands in the channel behind the position.
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
		case keep && len(batch) > 2*q.Last: // only with Wants: in order, the last count
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
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		var batch []Event
		newest, err := c.ask(ctx, q, at.last, func(e Event) error {
			if q.Wants == nil || q.Wants(e) {
				batch = append(batch, e)
			}
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

// ask gives each event of one answer and the highest number among them.
func (c Channel) ask(ctx context.Context, q Query, after uint64, each func(Event) error) (highest uint64, err error) {
	d := &decoder{each: func(e Event) error {
		highest = max(highest, e.Record)
		return each(e)
	}}
	if err := run(ctx, c.reader.programs, q.arguments(c.chosen, after), d); err != nil {
		return 0, fmt.Errorf("read event channel %s: %w", c.chosen.channel, err)
	}
	return highest, nil
}

// errorOutput is what is kept of what wevtutil complains, bytes.
const errorOutput = 4 << 10

func run(ctx context.Context, programs Programs, args []string, out io.Writer) error {
	var complaint limited
	code, err := command.Run(ctx, programs, &agentv1.RunCommand{Path: "wevtutil.exe", Args: args}, command.Streams{Stdout: out, Stderr: &complaint})
	if err != nil {
		return err
	}
	if code != 0 {
		return &command.FailedError{Command: "wevtutil " + strings.Join(args, " "), ExitCode: code, Stderr: complaint.String()}
	}
	return nil
}

// limited keeps the beginning.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, errorOutput-l.Len()))])
	return len(p), nil
}
