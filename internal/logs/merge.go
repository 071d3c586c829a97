package logs

import (
	"container/heap"
	"context"
	"errors"
	"time"
)

const (
	// reorder is how long a line of a log that is followed waits for an earlier
	// one of another log.
	reorder = 300 * time.Millisecond
	// patience is how long a log that sends nothing holds the others up while
	// they are followed.
	patience = 5 * time.Second
	// ahead is how many batches one log may have waiting for the others. It is
	// what bounds the memory: a log that is ahead is not read on.
	ahead = 4
)

// Merger puts the records of many logs into one order of time. A log's own order
// stays as it is, whatever its times say.
//
// One goroutine, Run's, owns all state; the logs' readers send it events.
type Merger struct {
	follow bool
	sink   Sink
	events chan event
	ended  chan struct{} // Run has

	inputs map[*Input]struct{} // that are not closed
	behind map[*Input]struct{} // whose next record must be seen before any is let go
	ready  inputs              // that have records waiting
	joined int
}

// Sink gets the records.
type Sink interface {
	Record(Record) error
	// Flush is called when there is nothing more for now.
	Flush() error
}

// NewMerger gives each record to sink, one at a time.
func NewMerger(follow bool, sink Sink) *Merger {
	return &Merger{
		follow: follow, sink: sink, events: make(chan event), ended: make(chan struct{}),
		inputs: map[*Input]struct{}{}, behind: map[*Input]struct{}{},
	}
}

// Input is one log, or a node whose logs are not known yet.
type Input struct {
	merger *Merger
	credit chan struct{}

	// Of the merger's goroutine alone:
	number  int // in the order of joining
	batches []batch
	key     time.Time // what the first waiting record is ordered by: never back
	live    bool      // it is not waited for: all that stood in it is here, or it took too long
	heard   time.Time
}

type batch struct {
	records []Record
	arrived time.Time
}

type eventKind int

const (
	joined eventKind = iota
	recorded
	caughtUp
	closed
)

type event struct {
	kind    eventKind
	input   *Input
	records []Record
}

// Begin adds an input before Run, so that the others wait for it from the start.
// It must be closed.
func (m *Merger) Begin() *Input {
	in := m.input()
	m.take(event{kind: joined, input: in}, time.Now())
	return in
}

// Add adds an input while Run runs. It must be closed.
func (m *Merger) Add(ctx context.Context) *Input {
	in := m.input()
	m.send(ctx, event{kind: joined, input: in})
	return in
}

func (m *Merger) input() *Input { return &Input{merger: m, credit: make(chan struct{}, ahead)} }

func (m *Merger) send(ctx context.Context, e event) {
	select {
	case m.events <- e:
	case <-m.ended:
	case <-ctx.Done():
	}
}

// Send gives the log's next records, which are the merger's then. It waits while
// the log is too far ahead.
func (in *Input) Send(ctx context.Context, records []Record) error {
	if len(records) == 0 {
		return ctx.Err()
	}
	select {
	case in.credit <- struct{}{}:
	case <-in.merger.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	in.merger.send(ctx, event{kind: recorded, input: in, records: records})
	return ctx.Err()
}

// CaughtUp says that all that stood in the log has been sent: what comes now is
// new.
func (in *Input) CaughtUp(ctx context.Context) {
	in.merger.send(ctx, event{kind: caughtUp, input: in})
}

// Close says that there is no more.
func (in *Input) Close(ctx context.Context) { in.merger.send(ctx, event{kind: closed, input: in}) }

// errEnded: nobody takes records any more.
var errEnded = errors.New("the output has ended")

// Run lets records out until every input is closed. It runs once.
func (m *Merger) Run(ctx context.Context) error {
	defer close(m.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for len(m.inputs) > 0 || len(m.ready) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-m.events:
			m.take(e, time.Now())
		case <-timer.C:
		}
		next, err := m.release(time.Now())
		if err != nil {
			return err
		}
		timer.Reset(next)
	}
	return nil
}

func (m *Merger) take(e event, now time.Time) {
	in := e.input
	in.heard = now
	switch e.kind {
	case joined:
		m.joined++
		in.number = m.joined
		m.inputs[in], m.behind[in] = struct{}{}, struct{}{}
	case caughtUp:
		in.live = true
		delete(m.behind, in)
	case closed:
		delete(m.inputs, in)
		delete(m.behind, in)
	case recorded:
		delete(m.behind, in)
		in.batches = append(in.batches, batch{e.records, now})
		if len(in.batches) == 1 {
			in.advance()
			heap.Push(&m.ready, in)
		}
	}
}

// advance orders the record that is first now. Lines without a time follow those
// before them, and where there is none yet, the moment they came.
func (in *Input) advance() {
	first := in.batches[0]
	switch {
	case first.records[0].Time.After(in.key):
		in.key = first.records[0].Time
	case in.key.IsZero() && in.live:
		in.key = first.arrived
	}
}

// idle is how long nothing happens where nothing does.
const idle = time.Hour

// release lets go what cannot be preceded by anything any more, and says when to
// look again.
func (m *Merger) release(now time.Time) (next time.Duration, err error) {
	m.forgetSlow(now)
	released := false
	for len(m.ready) > 0 && len(m.behind) == 0 {
		in := m.ready[0]
		wait := reorder - now.Sub(in.batches[0].arrived)
		if m.follow && in.live && wait > 0 && len(m.inputs) > 1 {
			next = wait
			break
		}
		if err := m.sink.Record(in.batches[0].records[0]); err != nil {
			return 0, err
		}
		released = true
		m.pop(in, now)
	}
	if released {
		if err := m.sink.Flush(); err != nil {
			return 0, err
		}
	}
	return m.nextLook(now, next), nil
}

// pop takes the first record off an input, which is the first of those ready.
func (m *Merger) pop(in *Input, now time.Time) {
	first := &in.batches[0]
	first.records[0] = Record{}
	if first.records = first.records[1:]; len(first.records) == 0 {
		in.batches = in.batches[1:]
		<-in.credit
	}
	if len(in.batches) > 0 {
		in.advance()
		heap.Fix(&m.ready, 0)
		return
	}
	heap.Pop(&m.ready)
	if _, open := m.inputs[in]; open && !in.live {
		m.behind[in] = struct{}{}
		in.heard = now
	}
}

// forgetSlow no longer waits for an input that says nothing: while logs are
// followed, one node that hangs must not hide the others.
func (m *Merger) forgetSlow(now time.Time) {
	for in := range m.behind {
		if m.follow && now.Sub(in.heard) >= patience {
			in.live = true
			delete(m.behind, in)
		}
	}
}

func (m *Merger) nextLook(now time.Time, next time.Duration) time.Duration {
	if next == 0 {
		next = idle
	}
	if m.follow {
		for in := range m.behind {
			next = min(next, patience-now.Sub(in.heard))
		}
	}
	return next
}

// inputs is a heap by key, and for one key in the order in which they joined.
type inputs []*Input

func (q inputs) Len() int { return len(q) }
func (q inputs) Less(i, j int) bool {
	if q[i].key.Equal(q[j].key) {
		return q[i].number < q[j].number
	}
	return q[i].key.Before(q[j].key)
}
func (q inputs) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *inputs) Push(x any)   { *q = append(*q, x.(*Input)) }
func (q *inputs) Pop() any {
	last := len(*q) - 1
	in := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return in
}
