package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// StoryOptions say how the story is told.
type StoryOptions struct {
	// Terminal is whether w is one: steps and progress are then live lines that
	// come and go; otherwise every step is a line.
	Terminal bool
	// JSON writes each line as {"time","level","node","message"}.
	JSON bool
	// Verbose tells the details too.
	Verbose bool
	// Rewrite returns a message of a node, or of the command itself if node is empty,
	// as it is printed; nil: as it is.
	Rewrite func(node, message string) string
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Story is what happens, on stderr: for each node a Reporter, all of which
// share the one stream.
type Story struct {
	options StoryOptions
	live    *live // nil unless on a terminal

	mutex sync.Mutex
	w     io.Writer
	ended bool // no step is waited for any more
}

// NewStory begins a story on w; End must be called before w is used again.
func NewStory(w io.Writer, options StoryOptions) *Story {
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Story{options: options, w: w}
	if options.Terminal && !options.JSON {
		s.live = newLive(Raw(w)) // whose lines are printable
	}
	return s
}

// Node is the part that tells of one node, named in each line. With an empty
// name it tells of the command itself.
func (s *Story) Node(name string) Reporter {
	r := &reporter{story: s, node: name}
	if s.live != nil {
		return &liveReporter{reporter: r, live: s.live}
	}
	return r
}

// End takes live lines away. A line reported later is still written.
func (s *Story) End() {
	s.mutex.Lock()
	s.ended = true
	s.mutex.Unlock()
	if s.live != nil {
		s.live.end()
	}
}

// Suspend takes live lines away, calls f, which may use the terminal for a
// question, and lets nobody write meanwhile.
func (s *Story) Suspend(f func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.live == nil {
		f()
		return
	}
	s.live.suspend(f)
}

// Done says that a node's work is over: its live line, if any, goes away.
func Done(r Reporter) {
	if d, ok := r.(interface{ Done() }); ok {
		d.Done()
	}
}

// level is how much a line matters.
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
		if err != nil { // strings and a sane clock always encode
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
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.live != nil && s.live.write(line) {
		return
	}
	_, _ = s.w.Write(line) // stderr is gone: there is nobody to tell
}

// reporter writes every line as it comes, and while a step goes on says so every
// sayEvery: a log that stands still looks like a program that does.
type reporter struct {
	story *Story
	node  string

	mutex sync.Mutex
	step  string
	begun time.Time
	beat  *time.Timer // nil: no step goes on
}

func (r *reporter) Step(format string, args ...any) {
	step := fmt.Sprintf(format, args...)
	r.story.line(levelInfo, r.node, step)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.step, r.begun = step, r.story.options.Now()
	if r.beat == nil {
		r.beat = time.AfterFunc(sayEvery, r.still)
	} else {
		r.beat.Reset(sayEvery)
	}
}

// still says that the step goes on.
func (r *reporter) still() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.beat == nil || r.story.hasEnded() {
		return
	}
	r.story.line(levelInfo, r.node, fmt.Sprintf("still %s, for %s", r.step, Age(r.story.options.Now().Sub(r.begun))))
	r.beat.Reset(sayEvery)
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
		say:     func(text string) { r.story.line(levelInfo, r.node, text) },
	}
}

// sayEvery is how often a transfer is heard of where nothing moves on screen.
const sayEvery = 10 * time.Second

// lineProgress says now and then how far a transfer is, and how it ended.
type lineProgress struct {
	*counter
	say  func(string)
	said time.Time
}

func (p *lineProgress) Add(n int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.add(n)
	if p.said.IsZero() {
		p.said = p.begun
	}
	if now.Sub(p.said) >= sayEvery {
		p.said = now
		p.say(p.text(now))
	}
}

func (p *lineProgress) End() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.end() {
		return
	}
	p.say(p.summary())
}
