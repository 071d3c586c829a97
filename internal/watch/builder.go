package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// builder runs one build whenever its sources change. A build whose sources
// change while it runs is ended and begun again.
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

	wanted  bool               // one is to begin
	running context.CancelFunc // nil: none runs
	failed  bool               // the last one
	took    time.Duration      // by the last one that succeeded

	// A build that changes its own sources would never end.
	stopped  int      // builds in a row
	suspects []string // changed during each of them
	own      []string // what the build itself changes, as we believe
}

// rounds is how many builds in a row the same file may stop.
const rounds = 3

func newBuilder(l *loop, spec *Build) *builder {
	return &builder{loop: l, spec: spec, tree: newTree(spec.Dir, spec.Patterns)}
}

// busy is whether its binaries are about to be something else.
func (b *builder) busy() bool { return b.wanted || b.running != nil }

// begin: starting up counts as a change. The sources are looked at first, so
// that a change during the build is seen.
func (b *builder) begin() {
	b.wanted = true
	b.scan()
}

// stir is a hint that a source may have changed; more may come.
func (b *builder) stir() {
	stop(b.quiet)
	b.quiet = b.after(Quiet, b.scan)
}

// poll looks without a hint: seldom where notifications work, and never so often
// that looking is all that the machine does.
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

// see takes in what stands there now.
func (b *builder) see(now snapshot) {
	changed := b.tree.take(now)
	for _, folder := range now.folders {
		known := b.notified[folder]
		if !b.watchFolder(folder) {
			break // there are too many, or it is not on a local disk: poll
		}
		b.rescan = b.rescan || !known // what happened since we looked, nobody said
	}
	b.change(changed)
	b.start()
}

// change decides what a change of the sources means.
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

// isOwn suspects files that change during one build after the other.
func (b *builder) isOwn(changed []string) bool {
	if b.stopped == 0 {
		b.suspects = changed
	} else {
		b.suspects = slices.DeleteFunc(slices.Clone(b.suspects), func(name string) bool { return !slices.Contains(changed, name) })
	}
	b.stopped++
	if b.stopped < rounds || len(b.suspects) == 0 {
		return false
	}
	b.own = append(b.own, b.suspects...)
	b.tell(Event{Kind: BuildLoops, Names: []string{b.spec.Name}, Message: fmt.Sprintf(
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

// build runs beside the loop.
func (b *builder) build(ctx context.Context) (time.Duration, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	b.post(func() { b.tell(Event{Kind: Building, Names: []string{b.spec.Name}}) })
	begun := time.Now()
	err := b.spec.Run(ctx)
	return time.Since(begun), err
}

// end takes the build's end. What changed until then, it did not see.
func (b *builder) end(took time.Duration, err error, now snapshot) {
	b.change(b.tree.take(now))
	b.running = nil
	if b.wanted {
		b.tell(Event{Kind: BuildStopped, Names: []string{b.spec.Name}, Took: took})
		b.start()
		return
	}
	b.stopped, b.suspects = 0, nil
	b.failed = err != nil
	if err != nil {
		b.tell(Event{Kind: BuildFailed, Names: []string{b.spec.Name}, Took: took, Err: err})
	} else {
		b.took = took
		b.tell(Event{Kind: Built, Names: []string{b.spec.Name}, Took: took})
	}
	for _, binary := range b.binaries {
		if err == nil {
			binary.built()
		}
		binary.evaluate()
	}
}
