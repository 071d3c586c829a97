package watch

import (
	"context"
	"maps"
	"sync"
	"time"
)

// target is one node: offline, at rest, or with one job, which is a connection
// being made, a push or a rollback. There is never more than one.
type target struct {
	*loop
	spec  *Target
	parts []part

	online   bool
	job      *job
	wanted   bool // a push
	force    bool
	rollBack bool
	failures int         // in a row
	pause    *time.Timer // until the next try; nil: now
	stuck    bool        // trying again will not help
	minded   <-chan struct{}
	sent     map[*binary]int // the version that was pushed last
}

// part is one component of a target.
type part struct {
	name   string
	binary *binary // nil: not watched
}

// job is what is being done to a target.
type job struct {
	cancel context.CancelFunc

	mutex      sync.Mutex
	committed  bool
	superseded bool

	err error // once it has ended
}

// commit is called by the job when the node is about to be changed.
func (j *job) commit() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.committed = !j.superseded
	return j.committed
}

func (j *job) hasCommitted() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.committed
}

func (j *job) wasSuperseded() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.superseded
}

// supersede ends the job unless the node is being changed.
func (j *job) supersede() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if !j.committed {
		j.superseded = true
		j.cancel()
	}
}

func (t *target) begin() {
	for _, p := range t.parts {
		t.wanted = t.wanted || p.binary == nil
	}
	t.connect()
}

// want is called when there is something new for the target. It is reason to try
// at once, whatever went wrong before.
func (t *target) want() {
	t.wanted = true
	t.supersede()
	t.hurry()
}

// again pushes even though nothing differs.
func (t *target) again() {
	t.wanted, t.force = true, true
	t.hurry()
}

func (t *target) wantRollBack() {
	t.rollBack, t.wanted = true, false
	t.supersede()
	t.hurry()
}

// hurry forgets that it had to wait.
func (t *target) hurry() {
	stop(t.pause)
	t.pause, t.failures, t.stuck = nil, 0, false
	t.evaluate()
}

// supersede ends a push that the node has not begun to carry out.
func (t *target) supersede() {
	if t.job != nil && t.online {
		t.job.supersede()
	}
}

// evaluate begins what is to be done next, if it can be.
func (t *target) evaluate() {
	switch {
	case t.quitting || t.job != nil || t.pause != nil || t.stuck:
	case !t.online:
		t.connect()
	case t.rollBack:
		t.rollBackNow()
	case t.wanted && !t.unsettled():
		t.push()
	}
}

// unsettled is whether something is on its way that belongs into the same
// transaction.
func (t *target) unsettled() bool {
	for _, p := range t.parts {
		if p.binary != nil && p.binary.unsettled() {
			return true
		}
	}
	return false
}

// do runs a job beside the loop, and then `end` in it.
func (t *target) do(work func(ctx context.Context, j *job) error, end func(took time.Duration, err error)) {
	ctx, cancel := context.WithCancel(t.ctx)
	j := &job{cancel: cancel}
	t.job = j
	t.work(func() {
		defer cancel()
		begun := time.Now()
		err := work(ctx, j)
		j.err = err
		t.post(func() {
			t.job = nil
			if err != nil && j.wasSuperseded() {
				t.tell(Event{Kind: Superseded, Node: t.spec.Name, Took: time.Since(begun)})
			} else {
				end(time.Since(begun), err)
			}
			t.evaluate()
		})
	})
}

func (t *target) connect() {
	t.do(func(ctx context.Context, _ *job) error {
		return t.spec.Remote.Connect(ctx)
	}, func(took time.Duration, err error) {
		if err != nil {
			t.fail(took, err)
			return
		}
		t.online = true
		t.tell(Event{Kind: Connected, Node: t.spec.Name, Took: took})
		t.mind()
	})
}

// mind notices when the connection ends while nothing is done with it. A job
// mends it itself, or leaves it broken.
func (t *target) mind() {
	lost := t.spec.Remote.Lost()
	if lost == t.minded {
		return
	}
	t.minded = lost
	t.work(func() {
		select {
		case <-lost:
			t.post(func() {
				if t.minded == lost && t.job == nil {
					t.drop()
				}
			})
		case <-t.ctx.Done():
		}
	})
}

// drop notes that the connection is gone; evaluate makes it anew.
func (t *target) drop() {
	if !t.online {
		return
	}
	t.online = false
	t.tell(Event{Kind: Lost, Node: t.spec.Name})
	t.evaluate()
}

func (t *target) push() {
	order := Order{Force: t.force, Built: map[string]time.Duration{}}
	versions := maps.Clone(t.sent)
	for _, p := range t.parts {
		switch {
		case p.binary == nil:
		case !p.binary.usable():
			continue
		default:
			if versions[p.binary] = p.binary.version; versions[p.binary] != t.sent[p.binary] {
				order.Built[p.name] = p.binary.took()
			}
		}
		order.Names = append(order.Names, p.name)
	}
	if len(order.Names) == 0 {
		return // what is wanted comes
	}
	t.wanted, t.force = false, false
	t.tell(Event{Kind: Pushing, Node: t.spec.Name, Names: order.Names})
	var result any
	t.do(func(ctx context.Context, j *job) (err error) {
		order.Commit = func() bool {
			if !j.commit() {
				return false
			}
			t.post(func() { t.tell(Event{Kind: Committing, Node: t.spec.Name, Names: order.Names}) })
			return true
		}
		order.Healthy = func() {
			t.post(func() { t.tell(Event{Kind: Healthy, Node: t.spec.Name, Names: order.Names}) })
		}
		result, err = t.spec.Remote.Push(ctx, order)
		return err
	}, func(took time.Duration, err error) {
		if err == nil {
			t.sent = versions
		}
		t.done(Event{Kind: Pushed, Names: order.Names, Took: took, Err: err, Result: result}, order.Force)
	})
}

func (t *target) rollBackNow() {
	t.rollBack = false
	var result any
	t.do(func(ctx context.Context, j *job) (err error) {
		j.commit() // somebody wants it
		result, err = t.spec.Remote.RollBack(ctx)
		return err
	}, func(took time.Duration, err error) {
		t.done(Event{Kind: RolledBack, Took: took, Err: err, Result: result}, false)
	})
}

// done takes the end of a push or rollback.
func (t *target) done(e Event, force bool) {
	e.Node = t.spec.Name
	switch {
	case e.Err == nil:
		t.failures = 0
		t.tell(e)
	case e.Kind == Pushed && t.outdated():
		t.wanted, t.force = true, t.force || force
		t.tell(Event{Kind: Superseded, Node: t.spec.Name, Took: e.Took})
	case e.Kind == Pushed && t.fail(e.Took, e.Err):
		t.wanted, t.force = true, t.force || force
	case e.Kind == RolledBack:
		t.tell(Event{Kind: Failed, Node: t.spec.Name, Took: e.Took, Err: e.Err})
	}
	select {
	case <-t.spec.Remote.Lost():
		t.drop()
	default:
		t.mind() // the job may have made another connection
	}
}

// outdated looks whether a file changed while it was pushed, which is why that
// failed.
func (t *target) outdated() bool {
	changed := false
	for _, p := range t.parts {
		if p.binary != nil {
			p.binary.look()
			changed = changed || p.binary.unsettled()
		}
	}
	return changed
}

// fail tells of an error; true where it is tried again after a while.
func (t *target) fail(took time.Duration, err error) bool {
	if t.quitting {
		return false
	}
	e := Event{Kind: Failed, Node: t.spec.Name, Took: took, Err: err}
	if t.spec.Remote.Retry(err) {
		e.Retry = min(firstRetry<<min(t.failures, 10), lastRetry)
		t.failures++
		t.pause = t.after(e.Retry, func() {
			t.pause = nil
			t.evaluate()
		})
	} else {
		t.stuck = !t.online
	}
	t.tell(e)
	return e.Retry > 0
}
