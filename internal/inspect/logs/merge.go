package logs

import (
	"container/heap"
	"context"
	"errors"
	"time"
)

const (
	// reorderDelay is the time that a line of a followed log waits for earlier lines of
	// other logs.
	reorderDelay = 300 * time.Millisecond
	// maxSilence is the maximum time for which a log that sends nothing delays the other
	// followed logs.
	maxSilence = 5 * time.Second
	// maxWaiting is the maximum number of batches of one log that wait for other logs. It bounds
	// the memory. If so many batches of a log wait, the log is not read further until one of these
	// batches is released.
	maxWaiting = 4
)

// Merger merges the records of many logs by time. It keeps the order of the records of each log,
// even if the times of these records are not in order.
//
// The goroutine of Run owns all state; the readers of logs send it events.
type Merger struct {
	follow bool
	sink   Sink
	events chan event
	ended  chan struct{} // closed when Run has ended

	inputs map[*Input]struct{} // the inputs that are not closed
	behind map[*Input]struct{} // the inputs that must send a record before any record is released
	ready  inputs              // the inputs with waiting records
	joined int
}

// Sink receives the records.
type Sink interface {
	Record(Record) error
	// Flush is called when no further record can be released for now.
	Flush() error
}

// NewMerger returns a Merger that passes the records to sink, one at a time.
func NewMerger(follow bool, sink Sink) *Merger {
	return &Merger{
		follow: follow, sink: sink, events: make(chan event), ended: make(chan struct{}),
		inputs: map[*Input]struct{}{}, behind: map[*Input]struct{}{},
	}
}

// Input stands for one log, or for a node whose logs are not known yet.
type Input struct {
	merger *Merger
	credit chan struct{}

	// Only the merger's goroutine uses the following fields.
	number  int // the inputs are numbered in the order in which they joined
	batches []batch
	key     time.Time // the sort key of the first waiting record; it never decreases
	live    bool      // the merger does not wait for this input: it has caught up, or was silent too long
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

// Begin adds an input before Run is called, so that Run waits for the first record of every
// input. The caller must close the input.
func (m *Merger) Begin() *Input {
	in := m.input()
	m.handle(event{kind: joined, input: in}, time.Now())
	return in
}

// Add adds an input while Run runs. The caller must close the input.
func (m *Merger) Add(ctx context.Context) *Input {
	in := m.input()
	m.send(ctx, event{kind: joined, input: in})
	return in
}

func (m *Merger) input() *Input { return &Input{merger: m, credit: make(chan struct{}, maxWaiting)} }

func (m *Merger) send(ctx context.Context, e event) {
	select {
	case m.events <- e:
	case <-m.ended:
	case <-ctx.Done():
	}
}

// Send passes the log's next records to the merger, which then owns the records. Send blocks while
// maxWaiting batches of the log wait.
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

// CaughtUp informs the merger that all stored lines of the log were sent. Further lines are
// new.
func (in *Input) CaughtUp(ctx context.Context) {
	in.merger.send(ctx, event{kind: caughtUp, input: in})
}

// Close ends the input: its log has no further records.
func (in *Input) Close(ctx context.Context) { in.merger.send(ctx, event{kind: closed, input: in}) }

// errEnded is returned by Send after Run has ended.
var errEnded = errors.New("the output has ended")

// Run releases records until every input is closed. It can be called once.
func (m *Merger) Run(ctx context.Context) error {
	defer close(m.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for len(m.inputs) > 0 || len(m.ready) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-m.events:
			m.handle(e, time.Now())
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

func (m *Merger) handle(e event, now time.Time) {
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

// advance updates the sort key for the input's first record. A record without a time, or with an
// earlier time than a record before it, keeps the sort key of the record before it. If no record of a
// live input has had a time, the sort key is the time at which the first of these records arrived.
func (in *Input) advance() {
	first := in.batches[0]
	switch {
	case first.records[0].Time.After(in.key):
		in.key = first.records[0].Time
	case in.key.IsZero() && in.live:
		in.key = first.arrived
	}
}

// idleInterval is the time until release runs again if no record is waiting.
const idleInterval = time.Hour

// release passes waiting records to the sink, if they are older than every record that can still
// arrive. It returns the duration after which release must run again.
func (m *Merger) release(now time.Time) (next time.Duration, err error) {
	m.skipSilent(now)
	released := false
	for len(m.ready) > 0 && len(m.behind) == 0 {
		in := m.ready[0]
		wait := reorderDelay - now.Sub(in.batches[0].arrived)
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
	return m.nextRelease(now, next), nil
}

// pop removes the first record of the first ready input.
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

// skipSilent stops waiting for inputs that send nothing: while logs are followed, a node
// that hangs must not hold back the lines of other nodes.
func (m *Merger) skipSilent(now time.Time) {
	for in := range m.behind {
		if m.follow && now.Sub(in.heard) >= maxSilence {
			in.live = true
			delete(m.behind, in)
		}
	}
}

func (m *Merger) nextRelease(now time.Time, next time.Duration) time.Duration {
	if next == 0 {
		next = idleInterval
	}
	if m.follow {
		for in := range m.behind {
			next = min(next, maxSilence-now.Sub(in.heard))
		}
	}
	return next
}

// inputs is a heap of inputs by key. Inputs with the same key are in the order in which they
// joined.
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
