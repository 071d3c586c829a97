package scale

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// The phases of a run, in their order.
const (
	Create = "create" // all Services are made
	Churn  = "churn"  // some endpoints are replaced
	Remove = "remove" // the namespace is removed
)

// entry is one Service in a phase.
type entry struct {
	name string
	vip  netip.Addr
	want []netip.Addr // sorted; empty: no load balancer
	// written is the time when the API server had stored the objects; zero: not yet.
	written time.Time
}

// span is the time in which a node programmed a Service: after the one moment, and by the other. A zero
// by means that it has not.
type span struct{ after, by time.Time }

// board has the Services that must be programmed in the present phase. All nodes share it.
type board struct {
	mu      sync.Mutex
	changed chan struct{} // is closed and replaced at each change
	phase   string
	entries []*entry
	byVIP   map[netip.Addr]int // the index of an entry
	// vips are the addresses of all Services that were made, in all phases.
	vips  map[netip.Addr]bool
	nodes map[*watcher][]span // the progress of each node, by the index of the entry
	last  map[*watcher]time.Time
	first time.Time // the first write of the phase
	final time.Time // the last write of the phase so far
}

func newBoard(nodes []*watcher) *board {
	b := &board{changed: make(chan struct{}), vips: map[netip.Addr]bool{}, nodes: map[*watcher][]span{},
		last: map[*watcher]time.Time{}}
	for _, n := range nodes {
		b.nodes[n] = nil
	}
	return b
}

// notify wakes all that wait for a change. The caller holds the lock.
func (b *board) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// await returns a channel that is closed at the next change.
func (b *board) await() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// begin begins a phase. Its Services are added by add.
func (b *board) begin(phase string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.phase, b.entries, b.byVIP = phase, nil, map[netip.Addr]int{}
	b.first, b.final = time.Time{}, time.Time{}
	for n := range b.nodes {
		b.nodes[n] = nil
		b.last[n] = time.Time{}
	}
	b.notify()
}

// add adds a Service whose objects the API server has stored.
func (b *board) add(e entry) {
	slices.SortFunc(e.want, netip.Addr.Compare)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byVIP[e.vip] = len(b.entries)
	b.vips[e.vip] = true
	b.entries = append(b.entries, &e)
	for n := range b.nodes {
		b.nodes[n] = append(b.nodes[n], span{})
	}
	if b.first.IsZero() || e.written.Before(b.first) {
		b.first = e.written
	}
	if e.written.After(b.final) {
		b.final = e.written
	}
	b.notify()
}

// isOurs reports whether a Service of this run has, or had, the address.
func (b *board) isOurs(vip netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.vips[vip]
}

// observe takes over a look at a node's load balancers. The look began and ended at these times, and the
// look before began at the time earlier.
func (b *board) observe(n *watcher, found map[netip.Addr][]netip.Addr, earlier, end time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	progress := false
	for i, e := range b.entries {
		s := &b.nodes[n][i]
		if !s.by.IsZero() {
			continue
		}
		has, exists := found[e.vip]
		if exists == (len(e.want) > 0) && slices.Equal(has, e.want) {
			*s = span{after: earlier, by: end}
			progress = true
		}
	}
	if progress {
		b.last[n] = end
	}
	b.notify()
}

// pending returns the number of Services that the node has not programmed.
func (b *board) pending(n *watcher) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	missing := 0
	for _, s := range b.nodes[n] {
		if s.by.IsZero() {
			missing++
		}
	}
	return missing
}

// progress returns the last time when something of the phase was written, or seen on the node.
func (b *board) progress(n *watcher) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last[n].After(b.final) {
		return b.last[n]
	}
	return b.final
}

// counts returns the numbers of Services that were written, and that the node has programmed, in the
// present phase.
func (b *board) counts(n *watcher) (phase string, written, programmed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.nodes[n] {
		if !s.by.IsZero() {
			programmed++
		}
	}
	return b.phase, len(b.entries), programmed
}

// writes returns the times of the first and the last write of the phase.
func (b *board) writes() (first, final time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first, b.final
}

// state returns a copy of the entries, and the progress of a node.
func (b *board) state(n *watcher) ([]entry, []span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]entry, 0, len(b.entries))
	for _, e := range b.entries {
		all = append(all, *e)
	}
	return all, slices.Clone(b.nodes[n])
}
