package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// StoryOptions configure a Story.
type StoryOptions struct {
	// Terminal reports whether the story's stream is a terminal. On a terminal, steps and progress
	// are live lines that disappear. Otherwise every step is written as a line.
	Terminal bool
	// JSON writes each line as {"time","level","node","message"}.
	JSON bool
	// Verbose also writes the details that Reporter.Debug reports.
	Verbose bool
	// Rewrite returns the text to print for a message. node is empty if the message is about
	// the command itself. nil: messages are not changed.
	Rewrite func(node, message string) string
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Story reports the progress of a command, on stderr. It has a Reporter for each node; all
// of them share one stream.
type Story struct {
	options StoryOptions
	whole   *Story // of which this one is a part; nil: none
	live    *live  // nil: the stream is not a terminal

	mutex sync.Mutex
	w     io.Writer
	ended bool       // End was called; a step that still runs is not reported any more
	parts []Reporter // of a part
}

// Part returns a story whose reports are in s: for a command that runs as a part of another one. Its End
// ends the reports of the part alone. Its Suspend does nothing but call f, so the streams of that command
// must themselves suspend s.
func (s *Story) Part() *Story { return &Story{options: s.options, whole: s} }

// NewStory returns a story on w. End must be called before anything else writes to w.
func NewStory(w io.Writer, options StoryOptions) *Story {
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Story{options: options, w: w}
	if options.Terminal && !options.JSON {
		s.live = newLive(Raw(w)) // Raw is enough, since the live lines are already printable
	}
	return s
}

// Node returns the reporter of one node, whose name is in each line. With an empty name, it
// returns the reporter of the command itself.
func (s *Story) Node(name string) Reporter {
	if s.whole != nil {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.parts = append(s.parts, s.whole.Node(name))
		return s.parts[len(s.parts)-1]
	}
	r := &reporter{story: s, node: name}
	if s.live != nil {
		return newLiveReporter(r, s.live)
	}
	return r
}

// End removes live lines. A line reported later is still written.
func (s *Story) End() {
	s.mutex.Lock()
	s.ended = true
	parts := s.parts
	s.mutex.Unlock()
	for _, r := range parts {
		Done(r)
	}
	if s.live != nil {
		s.live.end()
	}
}

// Suspend removes the live lines and calls f, which may use the terminal for a question. It
// blocks all other writes until f returns.
func (s *Story) Suspend(f func()) {
	if s.whole != nil {
		f()
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.live == nil {
		f()
		return
	}
	s.live.suspend(f)
}

// Done ends the report of a node's work: it removes the node's live line, or ends the reports
// that a step is still running.
func Done(r Reporter) {
	if d, ok := r.(interface{ Done() }); ok {
		d.Done()
	}
}

// level is the importance of a line.
type level string

const (
	levelDebug level = "debug"
	levelInfo  level = "info"
	levelWarn  level = "warn"
)

func (s *Story) line(l level, node, message string) {
	if l == levelDebug && !s.options.Verbose {
		return
	}
	if s.options.Rewrite != nil {
		message = s.options.Rewrite(node, message)
	}
	s.write(s.format(l, node, message))
}

func (s *Story) format(l level, node, message string) []byte {
	if s.options.JSON {
		out, err := json.Marshal(struct {
			Time    time.Time `json:"time"`
			Level   level     `json:"level"`
			Node    string    `json:"node,omitempty"`
			Message string    `json:"message"`
		}{s.options.Now(), l, node, message})
		if err != nil { // cannot happen: strings and a valid time can always be encoded
			return nil
		}
		return append(out, '\n')
	}
	prefix := ""
	if node != "" {
		prefix = Printable(node) + ": "
	}
	if l == levelWarn {
		prefix += "warning: "
	}
	message = strings.TrimRight(PrintableLines(message), "\n")
	return []byte(prefix + strings.ReplaceAll(message, "\n", "\n"+strings.Repeat(" ", 4)) + "\n")
}

func (s *Story) write(line []byte) {
	if s.whole != nil {
		s.whole.write(line)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.live != nil && s.live.write(line) {
		return
	}
	_, _ = s.w.Write(line) // if stderr fails, the error cannot be reported
}

// reporter writes every line immediately. During a long step it writes a line every
// reportEvery, since a program without output seems to hang.
type reporter struct {
	story *Story
	node  string
	about func() string // returns more text for a line about a long step; nil: no more text

	mutex sync.Mutex
	step  string
	begun time.Time
	beat  *time.Timer // nil: no step is running
}

func (r *reporter) Step(format string, args ...any) {
	step := fmt.Sprintf(format, args...)
	r.story.line(levelInfo, r.node, step)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.step, r.begun = step, r.story.options.Now()
	if r.beat == nil {
		r.beat = time.AfterFunc(reportEvery, r.still)
	} else {
		r.beat.Reset(reportEvery)
	}
}

// still reports that the step is still running.
func (r *reporter) still() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.beat == nil || r.story.hasEnded() {
		return
	}
	text := fmt.Sprintf("still %s, for %s", r.step, Age(r.story.options.Now().Sub(r.begun)))
	if r.about != nil {
		text += r.about()
	}
	r.story.line(levelInfo, r.node, text)
	r.beat.Reset(reportEvery)
}

// Done ends the step.
func (r *reporter) Done() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.beat != nil {
		r.beat.Stop()
		r.beat = nil
	}
}

func (s *Story) hasEnded() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.ended
}

func (r *reporter) Info(format string, args ...any) {
	r.story.line(levelInfo, r.node, fmt.Sprintf(format, args...))
}

func (r *reporter) Warn(format string, args ...any) {
	r.story.line(levelWarn, r.node, fmt.Sprintf(format, args...))
}

func (r *reporter) Debug(format string, args ...any) {
	r.story.line(levelDebug, r.node, fmt.Sprintf(format, args...))
}

func (r *reporter) Transfer(label string, total int64) Progress {
	return &lineProgress{
		counter: newCounter(r.story.options.Now, label, total),
		report:  func(text string) { r.story.line(levelInfo, r.node, text) },
	}
}

// reportEvery is the interval of the reports on a long step or a transfer if there is no terminal.
const reportEvery = 10 * time.Second

// lineProgress reports the progress of a transfer at intervals, and its result at the end.
type lineProgress struct {
	*counter
	report   func(string)
	reported time.Time
}

func (p *lineProgress) Add(n int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.add(n)
	if p.reported.IsZero() {
		p.reported = p.begun
	}
	if now.Sub(p.reported) >= reportEvery {
		p.reported = now
		p.report(p.text(now))
	}
}

func (p *lineProgress) End() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.end() {
		return
	}
	p.report(p.summary())
}
