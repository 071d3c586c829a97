package watch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// binary is a file on its way from its first changed byte to a push.
//
// It is pending from when it differs from what was taken last until it has stood
// still for Quiet and was found to be whole. What was seen last decides: a
// linker that goes on writing, or renames another file over it, begins it all
// anew.
type binary struct {
	*loop
	spec    *Binary
	builder *builder // nil: somebody else builds it
	targets []*target
	target  string // of a link

	seen    fs.FileInfo // as it was looked at last; nil: it is not there
	looked  bool        // it was looked at
	taken   fs.FileInfo // as it was taken last
	version int         // counts what was taken
	pending bool
	since   time.Time // when this change was noticed first
	still   bool      // it has stood still long enough
	exam    *exam
	broken  error              // why what was seen cannot be pushed, once that is certain
	abandon context.CancelFunc // ends what is done ahead for it; nil: nothing is

	quiet, soon, complaint *time.Timer
}

// exam is one look into the file.
type exam struct {
	cancel context.CancelFunc
	done   bool
	err    error
}

func (b *binary) isAt(path string) bool {
	return path == filepath.Clean(b.spec.Path) || path == b.target
}

// real is the file that a link leads to.
func (b *binary) real() string {
	if path, err := filepath.EvalSymlinks(b.spec.Path); err == nil {
		return path
	}
	return b.spec.Path
}

// folders are where a change of the file can be seen.
func (b *binary) folders() []string {
	b.target = b.real()
	return slices.Compact([]string{filepath.Dir(b.spec.Path), filepath.Dir(b.target)})
}

// look compares the file with what was seen last. While it is being built
// nothing it shows means anything.
func (b *binary) look() {
	if b.builder != nil && b.builder.busy() {
		return
	}
	info, err := os.Stat(b.spec.Path)
	if err != nil {
		info = nil
	}
	if b.looked && same(info, b.seen) {
		return
	}
	b.looked, b.seen = true, info
	b.forget()
	if info != nil && same(info, b.taken) {
		b.pending = false // back to what it was
		b.evaluate()
		return
	}
	b.settle(Quiet)
}

// settle begins, or begins anew, the wait for a file that stands still.
func (b *binary) settle(quiet time.Duration) {
	if !b.pending {
		b.pending, b.since = true, time.Now()
		if b.seen != nil {
			b.tell(Event{Kind: Changed, Names: []string{b.spec.Name}})
		}
	}
	b.complaint = b.after(quiet+patience, b.complain)
	if b.seen == nil {
		return
	}
	b.soon = b.after(min(early, quiet), b.examine)
	b.quiet = b.after(quiet, b.rest)
}

// rest is called when nothing was heard of the file for long enough. What a look
// shows counts.
func (b *binary) rest() {
	before := b.seen
	if b.look(); b.seen != before || !b.pending {
		return
	}
	b.still = true
	b.examine()
	b.judge()
}

// forget drops what is known of the file, what waits for it and what is done
// ahead for it.
func (b *binary) forget() {
	b.conclude()
	if b.abandon != nil {
		b.abandon()
	}
	b.abandon = nil
}

// conclude ends the wait for the file.
func (b *binary) conclude() {
	stop(b.quiet)
	stop(b.soon)
	stop(b.complaint)
	if b.exam != nil {
		b.exam.cancel()
	}
	b.exam, b.still, b.broken = nil, false, nil
}

func (b *binary) examine() {
	if !b.pending || b.seen == nil || b.exam != nil {
		return
	}
	ctx, cancel := context.WithCancel(b.ctx)
	this := &exam{cancel: cancel}
	b.exam = this
	b.work(func() {
		defer cancel()
		err := b.Examine(ctx, b.spec)
		b.post(func() {
			if b.exam != this {
				return
			}
			this.done, this.err = true, err
			b.look() // it may have changed while it was read
			if b.exam == this && err == nil {
				b.prepare()
			}
			b.judge()
		})
	})
}

func (b *binary) prepare() {
	if b.Prepare == nil {
		return
	}
	ctx, cancel := context.WithCancel(b.ctx)
	b.abandon = cancel
	b.work(func() {
		defer cancel()
		b.Prepare(ctx, b.spec)
	})
}

// judge takes the file if it has stood still and is whole.
func (b *binary) judge() {
	if !b.pending || !b.still || b.exam == nil || !b.exam.done || b.exam.err != nil {
		return
	}
	b.conclude()
	b.taken, b.pending = b.seen, false
	b.version++
	for _, t := range b.targets {
		t.want()
	}
}

// complain tells of a file that others would have to wait for without end.
func (b *binary) complain() {
	switch {
	case !b.pending || b.broken != nil:
		return
	case b.seen == nil && b.builder != nil:
		b.broken = fmt.Errorf("the build did not write %s: correct its command, or sourceURL", b.spec.Path)
	case b.seen == nil:
		b.broken = fmt.Errorf("%s does not exist: waiting for it", b.spec.Path)
	case b.exam != nil && b.exam.done && b.exam.err != nil:
		b.broken = b.exam.err
	default: // it is still being read
		b.complaint = b.after(patience, b.complain)
		return
	}
	b.tell(Event{Kind: Waiting, Names: []string{b.spec.Name}, Err: b.broken})
	b.evaluate()
}

// lookAgain examines a file once more that was found broken: it may have become
// whole without a trace in its size and time.
func (b *binary) lookAgain() {
	if b.pending && b.still && b.exam != nil && b.exam.done && b.exam.err != nil {
		b.exam = nil
		b.examine()
	}
}

// evaluate lets the targets see whether they still have to wait.
func (b *binary) evaluate() {
	for _, t := range b.targets {
		t.evaluate()
	}
}

// rebuild is called when its build begins: until that has ended, nothing that
// the file shows means anything.
func (b *binary) rebuild() {
	b.forget()
	b.pending = false
}

// built is called when its build has ended well: the file is written, and needs
// no time to settle.
func (b *binary) built() {
	info, err := os.Stat(b.spec.Path)
	if err != nil {
		info = nil
	}
	b.forget()
	b.looked, b.seen = true, info
	if info != nil && same(info, b.taken) {
		b.pending = false
		b.tell(Event{Kind: Unchanged, Names: []string{b.spec.Name}})
		return
	}
	b.settle(0)
}

// unsettled is whether it is worth a wait: it is about to be something else.
func (b *binary) unsettled() bool {
	if b.builder != nil && b.builder.busy() {
		return true
	}
	return b.pending && b.broken == nil
}

// usable is whether there is something to push.
func (b *binary) usable() bool {
	return b.version > 0 && b.broken == nil && (b.builder == nil || !b.builder.failed)
}

// took is how long its build took; 0 where nothing was built.
func (b *binary) took() time.Duration {
	if b.builder == nil {
		return 0
	}
	return b.builder.took
}

// same is whether two looks saw the same file.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}
