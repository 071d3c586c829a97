package ui

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// showAge is the age of a step from which on its live line has the age.
const showAge = 3 * time.Second

// live is the bottom part of a terminal. It has one line for each node with the node's
// current step. mpb moves the cursor; this package writes the lines.
type live struct {
	w io.Writer

	mutex     sync.Mutex
	container *mpb.Progress // nil until a live line is shown, and after clear
	lines     []*liveLine
	ended     bool
}

func newLive(w io.Writer) *live { return &live{w: w} }

// write writes a line above the live lines, and reports whether it wrote the line. It returns
// false if no live line has been shown, or if writing to the terminal fails.
func (l *live) write(line []byte) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.container == nil {
		return false
	}
	_, err := l.container.Write(line)
	return err == nil
}

// show makes a line visible on the terminal.
func (l *live) show(line *liveLine) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.ended || line.bar != nil {
		return
	}
	if l.container == nil {
		l.container = mpb.New(mpb.WithOutput(l.w), mpb.WithAutoRefresh())
	}
	bar, err := l.container.Add(0, mpb.BarFillerFunc(line.fill), mpb.BarRemoveOnComplete(), mpb.BarFillerTrim())
	if err != nil { // the container was shut down; ignored, since live lines are optional
		return
	}
	line.bar = bar
	l.lines = append(l.lines, line)
}

// hide removes a line permanently.
func (l *live) hide(line *liveLine) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if line.bar != nil {
		line.bar.Abort(true)
		line.bar = nil
	}
}

// suspend removes all lines while f uses the terminal.
func (l *live) suspend(f func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.clear()
	f()
}

func (l *live) end() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.ended = true
	l.clear()
}

func (l *live) clear() {
	if l.container == nil {
		return
	}
	for _, line := range l.lines {
		if line.bar != nil {
			line.bar.Abort(true)
			line.bar = nil
		}
	}
	l.container.Wait()
	l.container, l.lines = nil, nil
}

// liveLine is one live line: the line of a node, or a row of a Board.
type liveLine struct {
	bar    *mpb.Bar      // guarded by live.mutex
	render func() string // returns the text of a Board's row; nil: the text is node and step

	mutex    sync.Mutex
	node     string
	step     string
	begun    time.Time        // of the step
	now      func() time.Time // the clock of the step; nil: the time of a step is not shown
	transfer *counter
}

func (l *liveLine) fill(w io.Writer, s decor.Statistics) error {
	text, age, room := l.text(), l.age(), s.AvailableWidth-1
	if len(age) >= room {
		age = ""
	}
	if room > 0 {
		text = runewidth.Truncate(text, room-len(age), "…")
	}
	_, err := io.WriteString(w, text+age)
	return err
}

func (l *liveLine) text() string {
	if l.render != nil {
		return Printable(l.render())
	}
	text := l.current()
	if l.node != "" {
		text = l.node + ": " + text
	}
	return Printable(text)
}

// current returns the progress of the transfer, or the step if there is no transfer.
func (l *liveLine) current() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.transfer == nil {
		return l.step
	}
	l.transfer.mutex.Lock()
	defer l.transfer.mutex.Unlock()
	return l.transfer.text(l.transfer.now())
}

// age returns the end of a line whose step runs for long: how long. The end is in ASCII.
func (l *liveLine) age() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.now == nil || l.step == "" || l.transfer != nil {
		return ""
	}
	age := l.now().Sub(l.begun)
	if age < showAge {
		return ""
	}
	return ", " + Age(age)
}

// set sets the current step.
func (l *liveLine) set(step string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.step = step
	if l.now != nil {
		l.begun = l.now()
	}
}

// begin shows a transfer until it ends.
func (l *liveLine) begin(c *counter) Progress {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.transfer = c
	return &liveProgress{counter: c, line: l}
}

// liveReporter shows steps and transfers on its node's live line.
type liveReporter struct {
	*reporter
	live *live
	line liveLine
}

func newLiveReporter(r *reporter, l *live) *liveReporter {
	return &liveReporter{reporter: r, live: l, line: liveLine{node: r.node, now: r.story.options.Now}}
}

func (r *liveReporter) Step(format string, args ...any) {
	r.line.set(fmt.Sprintf(format, args...))
	r.live.show(&r.line)
}

func (r *liveReporter) Transfer(label string, total int64) Progress {
	progress := r.line.begin(newCounter(r.story.options.Now, label, total))
	r.live.show(&r.line)
	return progress
}

func (r *liveReporter) Done() { r.live.hide(&r.line) }

type liveProgress struct {
	*counter
	line *liveLine
}

func (p *liveProgress) Add(n int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.add(n)
}

func (p *liveProgress) End() {
	p.line.mutex.Lock()
	defer p.line.mutex.Unlock()
	if p.line.transfer == p.counter {
		p.line.transfer = nil
	}
}

// width returns the number of terminal columns that a cell takes.
func width(cell string) int { return runewidth.StringWidth(unmarked(cell)) }
