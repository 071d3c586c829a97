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

// binary is a file to push, and the state of the watch for it.
//
// The file becomes pending when it differs from the version that was last taken for a push. It
// stays pending until it has not changed for Quiet and Examine has found it complete. If a linker
// writes to the file again, or replaces it, this wait starts again.
type binary struct {
	*loop
	spec    *Binary
	builder *builder // nil: swdt does not build the file
	targets []*target
	target  string // the file to which spec.Path leads; spec.Path itself if it is no link

	seen    fs.FileInfo // the file at the last look; nil: it did not exist
	looked  bool        // look has run at least once
	taken   fs.FileInfo // the version of the file that was last taken for a push
	version int         // the number of versions that were taken so far
	pending bool
	since   time.Time // when the pending change was first noticed
	still   bool      // the file has not changed for long enough
	exam    *exam
	broken  error              // why the file cannot be pushed, once that is certain
	abandon context.CancelFunc // ends the work of Prepare; nil: none is running

	quiet, soon, complaint *time.Timer
}

// exam is one examination of the file's content.
type exam struct {
	cancel context.CancelFunc
	done   bool
	err    error
}

func (b *binary) isAt(path string) bool {
	return path == filepath.Clean(b.spec.Path) || path == b.target
}

// real returns the file to which spec.Path leads, which is another file if spec.Path is a link.
func (b *binary) real() string {
	if path, err := filepath.EvalSymlinks(b.spec.Path); err == nil {
		return path
	}
	return b.spec.Path
}

// folders updates b.target and returns the folders in which a change of the file can be noticed.
func (b *binary) folders() []string {
	b.target = b.real()
	return slices.Compact([]string{filepath.Dir(b.spec.Path), filepath.Dir(b.target)})
}

// look compares the file with its state at the last look. While the file is being built, look does
// nothing, since the file's state means nothing.
func (b *binary) look() {
	if b.builder != nil && b.builder.building() {
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
		b.pending = false // the file has the taken version again
		b.evaluate()
		return
	}
	b.awaitQuiet(Quiet)
}

// awaitQuiet starts, or restarts, the wait for the file to stop changing.
func (b *binary) awaitQuiet(quiet time.Duration) {
	if !b.pending {
		b.pending, b.since = true, time.Now()
		if b.seen != nil {
			b.report(Event{Kind: Changed, Names: []string{b.spec.Name}})
		}
	}
	b.complaint = b.after(quiet+reportBrokenAfter, b.reportBroken)
	if b.seen == nil {
		return
	}
	b.soon = b.after(min(early, quiet), b.examine)
	b.quiet = b.after(quiet, b.rest)
}

// rest is called when no change of the file was noticed for long enough. It looks at the file
// once more. If this look finds no change either, the file counts as written.
func (b *binary) rest() {
	before := b.seen
	if b.look(); b.seen != before || !b.pending {
		return
	}
	b.still = true
	b.examine()
	b.takeIfWhole()
}

// forget ends the wait for the file and the work of Prepare, and drops the result of Examine.
func (b *binary) forget() {
	b.endWait()
	if b.abandon != nil {
		b.abandon()
	}
	b.abandon = nil
}

// endWait ends the wait for the file.
func (b *binary) endWait() {
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
			b.look() // the file may have changed while Examine read it
			if b.exam == this && err == nil {
				b.prepare()
			}
			b.takeIfWhole()
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

// takeIfWhole takes the file if it has stopped changing and Examine has found it complete.
func (b *binary) takeIfWhole() {
	if !b.pending || !b.still || b.exam == nil || !b.exam.done || b.exam.err != nil {
		return
	}
	b.endWait()
	b.taken, b.pending = b.seen, false
	b.version++
	for _, t := range b.targets {
		t.want()
	}
}

// reportBroken reports a missing or broken file. After the report, the other files of the same push
// no longer wait for this file.
func (b *binary) reportBroken() {
	switch {
	case !b.pending || b.broken != nil:
		return
	case b.seen == nil && b.builder != nil:
		b.broken = fmt.Errorf("the build did not write %s: correct its command, or sourceURL", b.spec.Path)
	case b.seen == nil:
		b.broken = fmt.Errorf("%s does not exist: waiting for it", b.spec.Path)
	case b.exam != nil && b.exam.done && b.exam.err != nil:
		b.broken = b.exam.err
	default: // Examine still reads the file
		b.complaint = b.after(reportBrokenAfter, b.reportBroken)
		return
	}
	b.report(Event{Kind: Waiting, Names: []string{b.spec.Name}, Err: b.broken})
	b.evaluate()
}

// lookAgain repeats the examination of a file that Examine has found broken: by now the file
// may be complete although its size and time have not changed.
func (b *binary) lookAgain() {
	if b.pending && b.still && b.exam != nil && b.exam.done && b.exam.err != nil {
		b.exam = nil
		b.examine()
	}
}

// evaluate lets the targets check whether they still have to wait.
func (b *binary) evaluate() {
	for _, t := range b.targets {
		t.evaluate()
	}
}

// rebuild is called when the file's build begins: until that build has ended, the file's state
// means nothing.
func (b *binary) rebuild() {
	b.forget()
	b.pending = false
}

// built is called when the file's build has succeeded: the file is complete, and does not
// have to stay unchanged for Quiet.
func (b *binary) built() {
	info, err := os.Stat(b.spec.Path)
	if err != nil {
		info = nil
	}
	b.forget()
	b.looked, b.seen = true, info
	if info != nil && same(info, b.taken) {
		b.pending = false
		b.report(Event{Kind: Unchanged, Names: []string{b.spec.Name}})
		return
	}
	b.awaitQuiet(0)
}

// unsettled reports whether a push should wait for the file, which is about to change.
func (b *binary) unsettled() bool {
	if b.builder != nil && b.builder.building() {
		return true
	}
	return b.pending && b.broken == nil
}

// usable reports whether there is a file to push.
func (b *binary) usable() bool {
	return b.version > 0 && b.broken == nil && (b.builder == nil || !b.builder.failed)
}

// took returns how long the file's last successful build took; 0 if swdt has not built the file.
func (b *binary) took() time.Duration {
	if b.builder == nil {
		return 0
	}
	return b.builder.took
}

// same reports whether two looks saw the same file.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}
