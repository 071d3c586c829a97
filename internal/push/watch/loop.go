package watch

import (
	"context"
	"errors"
	"sync"
	"time"
)

// loop owns all state. Jobs and timers send it functions, which it runs one at a time, so that the
// state needs no lock.
type loop struct {
	Options
	binaries []*binary
	builders []*builder
	targets  []*target

	inbox    chan func()
	ended    chan struct{} // closed when the inbox is no longer read
	jobs     sync.WaitGroup
	ctx      context.Context // the context of all jobs; run sets it once
	cancel   context.CancelFunc
	turn     chan struct{} // has an element while a build runs: one build at a time uses the machine best
	quitting bool
	notified map[string]bool // folders whose changes Notifier reports
}

func newLoop(o Options) *loop {
	if o.Report == nil {
		o.Report = func(Event) {}
	}
	l := &loop{
		Options: o, inbox: make(chan func()), ended: make(chan struct{}),
		turn: make(chan struct{}, 1), notified: map[string]bool{},
	}
	byPath := map[*Binary]*binary{}
	byBuild := map[*Build]*builder{}
	for _, spec := range o.Binaries {
		b := &binary{loop: l, spec: spec}
		if spec.Build != nil {
			if byBuild[spec.Build] == nil {
				byBuild[spec.Build] = newBuilder(l, spec.Build)
				l.builders = append(l.builders, byBuild[spec.Build])
			}
			b.builder = byBuild[spec.Build]
			b.builder.binaries = append(b.builder.binaries, b)
			b.builder.tree.output(spec.Path)
		}
		byPath[spec] = b
		l.binaries = append(l.binaries, b)
	}
	for _, spec := range o.Targets {
		t := &target{loop: l, spec: spec, force: o.Force, sent: map[*binary]int{}}
		for _, c := range spec.Components {
			p := part{name: c.Name, binary: byPath[c.Binary]}
			t.parts = append(t.parts, p)
			if p.binary != nil {
				p.binary.targets = append(p.binary.targets, t)
			}
		}
		l.targets = append(l.targets, t)
	}
	return l
}

func (l *loop) run(ctx context.Context) error {
	l.ctx, l.cancel = context.WithCancel(ctx)
	shutDown := sync.OnceFunc(func() { l.shutDown(ctx) })
	defer shutDown()
	l.begin()
	files, trees := time.NewTimer(l.fileInterval()), time.NewTimer(treePoll)
	defer files.Stop()
	defer trees.Stop()
	for !l.quitting || l.committed() {
		select {
		case <-ctx.Done():
			shutDown()
			return errors.Join(append([]error{context.Cause(ctx)}, l.cutShort()...)...)
		case f := <-l.inbox:
			f()
		case path, ok := <-l.events():
			l.notice(path, ok)
		case command, ok := <-l.Commands:
			l.handle(command, ok)
		case <-files.C:
			l.lookAtFiles()
			files.Reset(l.fileInterval())
		case <-trees.C:
			l.lookAtTrees()
			trees.Reset(treePoll)
		}
	}
	return nil
}

// shutDown ends all jobs, then closes the connections to the nodes, and waits for both.
func (l *loop) shutDown(ctx context.Context) {
	l.quitting = true
	l.cancel()
	close(l.ended)
	l.jobs.Wait()
	for _, t := range l.targets {
		l.work(func() { t.spec.Remote.Close(ctx) })
	}
	l.jobs.Wait()
	if l.Notifier != nil {
		_ = l.Notifier.Close() // the Notifier's events are no longer needed, so an error does not matter
	}
}

// cutShort returns the errors of transactions that were not followed to their end.
func (l *loop) cutShort() []error {
	var errs []error
	for _, t := range l.targets {
		if t.job != nil && t.job.hasCommitted() {
			errs = append(errs, t.job.err)
		}
	}
	return errs
}

func (l *loop) begin() {
	how := l.watchFolders()
	var names []string
	for _, b := range l.binaries {
		names = append(names, b.spec.Name)
	}
	l.report(Event{Kind: Watching, Names: names, Message: how})
	for _, t := range l.targets {
		t.begin()
	}
	for _, b := range l.builders {
		b.begin()
	}
	for _, b := range l.binaries {
		b.look()
	}
}

func (l *loop) events() <-chan string {
	if l.Notifier == nil {
		return nil
	}
	return l.Notifier.Events()
}

// notice handles a notification of the Notifier: it looks at the binaries and trees that path
// concerns. If path is itself a watched folder, that folder may have been removed, which also ends
// the operating system's watch. So notice forgets that folder's watch, and the next call of
// watchFolders asks for it again.
func (l *loop) notice(path string, ok bool) {
	if !ok {
		l.Notifier, l.notified = nil, map[string]bool{}
		return
	}
	delete(l.notified, path)
	for _, b := range l.binaries {
		if path == "" || b.isAt(path) {
			b.look()
		}
	}
	for _, b := range l.builders {
		if path == "" || b.tree.concerns(path) {
			b.sourceChanged()
		}
	}
}

func (l *loop) lookAtFiles() {
	l.watchFolders() // folders may have been created since the last call
	for _, b := range l.binaries {
		b.look()
		b.lookAgain()
	}
}

func (l *loop) lookAtTrees() {
	for _, b := range l.builders {
		b.poll()
	}
}

func (l *loop) handle(command Command, ok bool) {
	if !ok {
		l.Commands = nil
		return
	}
	switch command {
	case Quit:
		l.quitting = true
		for _, t := range l.targets {
			t.supersede()
		}
	case Again:
		for _, t := range l.targets {
			t.pushAgain()
		}
	case RollBack:
		for _, t := range l.targets {
			t.wantRollBack()
		}
	}
}

// committed reports whether a node is in the middle of a transaction.
func (l *loop) committed() bool {
	for _, t := range l.targets {
		if t.job != nil && t.job.hasCommitted() {
			return true
		}
	}
	return false
}

// watchFolders asks for notifications of the folders of all binaries. If a folder gets no
// notifications, watchFolders returns a text about how swdt notices changes instead; otherwise it
// returns "".
func (l *loop) watchFolders() string {
	how := ""
	for _, b := range l.binaries {
		for _, folder := range b.folders() {
			if !l.watchFolder(folder) {
				how = "by looking every " + filePoll.String()
			}
		}
	}
	return how
}

func (l *loop) watchFolder(folder string) bool {
	if l.Notifier == nil {
		return false
	}
	if !l.notified[folder] && l.Notifier.Watch(folder) == nil {
		l.notified[folder] = true
	}
	return l.notified[folder]
}

// fileInterval returns how often to look at the files.
func (l *loop) fileInterval() time.Duration {
	for _, b := range l.binaries {
		for _, folder := range b.folders() {
			if !l.notified[folder] {
				return filePoll
			}
		}
	}
	return fileSafety
}

func (l *loop) report(e Event) {
	e.Time = time.Now()
	l.Report(e)
}

// after runs f in the loop when the time d has passed.
func (l *loop) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { l.post(f) })
}

// post sends f to the loop. After the loop has ended, f is dropped.
func (l *loop) post(f func()) {
	select {
	case l.inbox <- f:
	case <-l.ended:
	}
}

// work runs a job in its own goroutine, outside the loop.
func (l *loop) work(job func()) { l.jobs.Go(job) }

func stop(timer *time.Timer) {
	if timer != nil {
		timer.Stop()
	}
}
