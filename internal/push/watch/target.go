package watch

import (
	"context"
	"maps"
	"sync"
	"time"
)

// target is one node. It is offline, idle, or has exactly one job: a connection attempt, a
// push or a rollback.
type target struct {
	*loop
	spec  *Target
	parts []part

	online   bool
	job      *job
	wanted   bool // a push is wanted
	force    bool
	rollBack bool
	failures int         // failed tries in a row
	pause    *time.Timer // runs until the next try; nil: no try is planned
	stuck    bool        // a retry cannot help
	minded   <-chan struct{}
	sent     map[*binary]int // the versions of the last successful push
}

// part is one component of a target.
type part struct {
	name   string
	binary *binary // nil: not watched
}

// job is the work in progress on a target.
type job struct {
	cancel context.CancelFunc

	mutex      sync.Mutex
	committed  bool
	superseded bool

	err error // set once the job has ended
}

// commit must be called right before the job changes the node. It returns false if the job was
// superseded; the job must then leave the node unchanged.
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

// want is called when the target needs a new push. It ends a running push that has not begun to
// change the node, and makes the next try at once, even after failures.
func (t *target) want() {
	t.wanted = true
	t.supersede()
	t.resetBackoff()
}

// pushAgain pushes even if nothing differs.
func (t *target) pushAgain() {
	t.wanted, t.force = true, true
	t.resetBackoff()
}

func (t *target) wantRollBack() {
	t.rollBack, t.wanted = true, false
	t.supersede()
	t.resetBackoff()
}

// resetBackoff forgets earlier failures, so that the next try is made at once.
func (t *target) resetBackoff() {
	stop(t.pause)
	t.pause, t.failures, t.stuck = nil, 0, false
	t.evaluate()
}

// supersede cancels the running push, unless the node is already being changed.
func (t *target) supersede() {
	if t.job != nil && t.online {
		t.job.supersede()
	}
}

// evaluate starts the next job, if one is due and possible.
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

// unsettled reports whether one of the target's binaries is about to change. A push then
// waits, so that all changes are in one transaction.
func (t *target) unsettled() bool {
	for _, p := range t.parts {
		if p.binary != nil && p.binary.unsettled() {
			return true
		}
	}
	return false
}

// do runs the function work as a job in its own goroutine. If the job failed because it was
// superseded, do only reports that. Otherwise the loop then calls the function end with the
// duration and the error of the job.
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
				t.report(Event{Kind: Superseded, Node: t.spec.Name, Took: time.Since(begun)})
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
		t.report(Event{Kind: Connected, Node: t.spec.Name, Took: took})
		t.watchConnection()
	})
}

// watchConnection notices when the connection ends while no job uses it. A job
// reconnects by itself, or leaves the connection broken.
func (t *target) watchConnection() {
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

// drop records that the connection is lost. evaluate then connects again.
func (t *target) drop() {
	if !t.online {
		return
	}
	t.online = false
	t.report(Event{Kind: Lost, Node: t.spec.Name})
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
		return // the push follows when a binary becomes usable
	}
	t.wanted, t.force = false, false
	t.report(Event{Kind: Pushing, Node: t.spec.Name, Names: order.Names})
	var result any
	t.do(func(ctx context.Context, j *job) (err error) {
		order.Commit = func() bool {
			if !j.commit() {
				return false
			}
			t.post(func() { t.report(Event{Kind: Committing, Node: t.spec.Name, Names: order.Names}) })
			return true
		}
		order.Healthy = func() {
			t.post(func() { t.report(Event{Kind: Healthy, Node: t.spec.Name, Names: order.Names}) })
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
		j.commit() // the user asked for the rollback, so nothing may supersede it
		result, err = t.spec.Remote.RollBack(ctx)
		return err
	}, func(took time.Duration, err error) {
		t.done(Event{Kind: RolledBack, Took: took, Err: err, Result: result}, false)
	})
}

// done handles the result of a push or rollback.
func (t *target) done(e Event, force bool) {
	e.Node = t.spec.Name
	switch {
	case e.Err == nil:
		t.failures = 0
		t.report(e)
	case e.Kind == Pushed && t.outdated():
		t.wanted, t.force = true, t.force || force
		t.report(Event{Kind: Superseded, Node: t.spec.Name, Took: e.Took})
	case e.Kind == Pushed && t.fail(e.Took, e.Err):
		t.wanted, t.force = true, t.force || force
	case e.Kind == RolledBack:
		t.report(Event{Kind: Failed, Node: t.spec.Name, Took: e.Took, Err: e.Err})
	}
	select {
	case <-t.spec.Remote.Lost():
		t.drop()
	default:
		t.watchConnection() // the job may have reconnected
	}
}

// outdated reports whether a file has changed since its push began, which would explain the failure
// of the push.
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

// fail reports an error, unless the watch is about to end. It returns true if the work will be
// retried after a while.
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
	t.report(e)
	return e.Retry > 0
}
