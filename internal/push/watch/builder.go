package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// builder runs the build spec when the watch starts, and again when the build's sources change. A
// change while the build runs stops that run and starts another one, unless the build itself seems to
// have made the change.
type builder struct {
	*loop
	spec     *Build
	binaries []*binary
	tree     *tree

	quiet    *time.Timer
	scanning bool
	rescan   bool
	scanTook time.Duration
	scanned  time.Time

	wanted  bool               // a build is to begin
	running context.CancelFunc // nil: no build is running
	failed  bool               // the last build failed
	took    time.Duration      // duration of the last build that succeeded

	// The following fields detect a build that changes its own sources. Without that detection,
	// such a build would be restarted for ever.
	stopped  int      // builds stopped in a row
	suspects []string // files that changed during every one of the stopped builds
	own      []string // files that the build itself seems to change
}

// maxStops is the number of consecutive builds after which a file that changed during all of them
// counts as an output of the build.
const maxStops = 3

func newBuilder(l *loop, spec *Build) *builder {
	return &builder{loop: l, spec: spec, tree: newTree(spec.Dir, spec.Patterns)}
}

// building reports whether a build runs or is about to run. The outputs of the build must not be
// pushed yet.
func (b *builder) building() bool { return b.wanted || b.running != nil }

// begin requests the first build when the watch starts. It looks at the sources first, so
// that a change during the build is noticed.
func (b *builder) begin() {
	b.wanted = true
	b.scan()
}

// sourceChanged is called when a source may have changed. It waits for Quiet before it looks,
// since more changes may follow.
func (b *builder) sourceChanged() {
	stop(b.quiet)
	b.quiet = b.after(Quiet, b.scan)
}

// poll looks at the sources at intervals, since notifications can be missing. The intervals are
// longer if notifications work. Looking takes at most a twentieth of the time.
func (b *builder) poll() {
	interval := max(treePoll, 20*b.scanTook)
	if b.allNotified() {
		interval = max(treeSafety, interval)
	}
	if time.Since(b.scanned) >= interval {
		b.scan()
	}
}

func (b *builder) allNotified() bool {
	for _, folder := range b.tree.last.folders {
		if !b.notified[folder] {
			return false
		}
	}
	return true
}

func (b *builder) scan() {
	if b.scanning {
		b.rescan = true
		return
	}
	b.scanning = true
	before := b.tree.last
	b.work(func() {
		begun := time.Now()
		now := b.tree.look(b.ctx, before)
		took := time.Since(begun)
		b.post(func() {
			b.scanning, b.scanned, b.scanTook = false, time.Now(), took
			b.see(now)
			if b.rescan {
				b.rescan = false
				b.scan()
			}
		})
	})
}

// see handles a new snapshot of the sources: it asks for notifications of their folders, and starts
// or restarts the build if sources have changed.
func (b *builder) see(now snapshot) {
	changed := b.tree.update(now)
	for _, folder := range now.folders {
		known := b.notified[folder]
		if !b.watchFolder(folder) {
			break // no notifications (too many folders, or no local disk): poll finds the changes
		}
		b.rescan = b.rescan || !known // no notification reports a change between the look and the start of this watch
	}
	b.change(changed)
	b.start()
}

// change reacts to changed sources.
func (b *builder) change(changed []string) {
	if b.running == nil {
		b.wanted = b.wanted || len(changed) > 0
		return
	}
	changed = slices.DeleteFunc(changed, func(name string) bool { return slices.Contains(b.own, name) })
	if len(changed) == 0 || b.wanted || b.isOwn(changed) {
		return
	}
	b.wanted = true
	b.running()
}

// isOwn reports whether the build itself seems to have changed all of these files. A file counts as
// changed by the build once it has changed during maxStops builds in a row.
func (b *builder) isOwn(changed []string) bool {
	if b.stopped == 0 {
		b.suspects = changed
	} else {
		b.suspects = slices.DeleteFunc(slices.Clone(b.suspects), func(name string) bool {
			return !slices.Contains(changed, name)
		})
	}
	b.stopped++
	if b.stopped < maxStops || len(b.suspects) == 0 {
		return false
	}
	b.own = append(b.own, b.suspects...)
	b.report(Event{Kind: BuildLoops, Names: []string{b.spec.Name}, Message: fmt.Sprintf(
		"%s changed during %d builds in a row: does the build write it? Leave it out with build.watch: \"!%s\"",
		strings.Join(b.suspects, ", "), b.stopped, b.suspects[0])})
	return len(b.suspects) == len(changed)
}

func (b *builder) start() {
	if !b.wanted || b.running != nil || b.quitting {
		return
	}
	b.wanted = false
	for _, binary := range b.binaries {
		binary.rebuild()
	}
	ctx, cancel := context.WithCancel(b.ctx)
	b.running = cancel
	before := b.tree.last
	b.work(func() {
		defer cancel()
		took, err := b.build(ctx)
		now := b.tree.look(b.ctx, before)
		b.post(func() { b.end(took, err, now) })
	})
}

// build waits until no other build runs, and then runs the build. It is called outside the loop's
// goroutine.
func (b *builder) build(ctx context.Context) (time.Duration, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	b.post(func() { b.report(Event{Kind: Building, Names: []string{b.spec.Name}}) })
	begun := time.Now()
	err := b.spec.Run(ctx)
	return time.Since(begun), err
}

// end handles the result of a build. now is a snapshot of the sources after the build. A change in
// that snapshot was made during the build, so the build's outputs may not include the change.
func (b *builder) end(took time.Duration, err error, now snapshot) {
	b.change(b.tree.update(now))
	b.running = nil
	if b.wanted {
		b.report(Event{Kind: BuildStopped, Names: []string{b.spec.Name}, Took: took})
		b.start()
		return
	}
	b.stopped, b.suspects = 0, nil
	b.failed = err != nil
	if err != nil {
		b.report(Event{Kind: BuildFailed, Names: []string{b.spec.Name}, Took: took, Err: err})
	} else {
		b.took = took
		b.report(Event{Kind: Built, Names: []string{b.spec.Name}, Took: took})
	}
	for _, binary := range b.binaries {
		if err == nil {
			binary.built()
		}
		binary.evaluate()
	}
}
