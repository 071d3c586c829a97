// Package goroutines reads dumps of the goroutines of Go programs: the text of runtime.Stack, of
// /debug/pprof/goroutine?debug=2, and of containerd's log.
//
// It keeps the names of functions and the states, and drops arguments and files: the rest of a dump holds
// addresses and paths, and a dump may come from a node or a person that is not trusted. All that it keeps is
// bounded. maruel/panicparse reads the same text; it is not used, since it keeps arguments and files, bounds
// neither the number of goroutines nor their frames, and stops at the first line that it does not know.
package goroutines

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Bounds on what Parse keeps.
const (
	// MostBytes is the largest dump that is read, in bytes; the rest of a larger one is not read.
	MostBytes = 16 << 20
	// mostGoroutines, mostFrames and longestName bound the goroutines of a dump, the frames of a goroutine, and a
	// name in bytes. Go itself writes at most 100 frames.
	mostGoroutines = 100_000
	mostFrames     = 128
	longestName    = 256
)

// Goroutine is one goroutine of a dump.
type Goroutine struct {
	ID    uint64
	State string // why it does not run, such as "select", "syscall" or "sync.Mutex.Lock"; "running" or "runnable"
	// Minutes is how long it has been in this state, in whole minutes; 0: less than one minute, or unknown.
	Minutes   int
	Frames    []string // the functions, the innermost first
	CreatedBy string   // the function that started it; "" for the first one
}

// Dump has the goroutines of one process.
type Dump struct {
	Goroutines []Goroutine
	Cut        bool // the dump is larger than the bounds, and the rest is missing
}

// header is the first line of a goroutine. A crash adds gp=, m= and mp=; profiler labels may follow the state.
var header = regexp.MustCompile(`^goroutine (\d{1,19})(?: gp=\S+)?(?: m=\S+)?(?: mp=\S+)? \[([^\]]{1,200})\].{0,1000}:$`)

// Parse reads a dump. Text that belongs to no goroutine is skipped, so a dump may be a part of a log. The error is that of r.
func Parse(r io.Reader) (Dump, error) {
	text, err := io.ReadAll(io.LimitReader(r, MostBytes+1))
	p := parser{names: map[string]string{}}
	if len(text) > MostBytes {
		text, p.dump.Cut = text[:MostBytes], true
	}
	for line := range lines(text) {
		p.line(line)
	}
	p.end()
	return p.dump, err
}

// lines returns the lines of a text. A log of containerd has a whole dump in one line, with its line ends escaped.
func lines(text []byte) func(yield func(string) bool) {
	if bytes.Contains(text, []byte(`goroutine stack dump ===\n`)) {
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(`\n`), []byte("\n")), []byte(`\t`), []byte("\t"))
	}
	return func(yield func(string) bool) {
		scanner := bufio.NewScanner(bytes.NewReader(text))
		scanner.Buffer(nil, len(text)+1)
		for scanner.Scan() {
			if !yield(strings.TrimSpace(scanner.Text())) {
				return
			}
		}
	}
}

type parser struct {
	dump    Dump
	names   map[string]string // each name once: a dump repeats few names many times
	current *Goroutine
}

func (p *parser) line(line string) {
	if m := headerOf(line); m != nil {
		p.end()
		if len(p.dump.Goroutines) == mostGoroutines {
			p.dump.Cut = true
			return
		}
		id, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			return
		}
		p.current = &Goroutine{ID: id}
		p.state(m[2])
		return
	}
	if p.current == nil {
		return
	}
	if by, ok := strings.CutPrefix(line, "created by "); ok {
		by, _, _ = strings.Cut(by, " in goroutine ")
		p.current.CreatedBy = p.name(by)
		p.end()
		return
	}
	if function, ok := frame(line); ok && len(p.current.Frames) < mostFrames {
		p.current.Frames = append(p.current.Frames, p.name(function))
	}
}

// headerOf returns the parts of a header; nil: the line is none.
func headerOf(line string) []string {
	if !strings.HasPrefix(line, "goroutine ") { // most lines are none
		return nil
	}
	return header.FindStringSubmatch(line)
}

// state reads the words in the brackets of a header, such as "syscall, 58 minutes, locked to thread".
func (p *parser) state(words string) {
	parts := strings.Split(words, ", ")
	p.current.State = p.name(parts[0])
	for _, part := range parts[1:] {
		if number, ok := strings.CutSuffix(part, " minutes"); ok {
			if minutes, err := strconv.ParseUint(number, 10, 31); err == nil {
				p.current.Minutes = int(minutes)
			}
		}
	}
}

// end keeps the goroutine that is being read, if there is one.
func (p *parser) end() {
	if p.current != nil {
		p.dump.Goroutines = append(p.dump.Goroutines, *p.current)
	}
	p.current = nil
}

// frame returns the function of a line such as "main.(*T).f(0xc000, 0x1)"; ok is false for the line of its file, and
// for "...23 frames elided...".
func frame(line string) (function string, ok bool) {
	open := strings.LastIndexByte(line, '(')
	if open <= 0 || !strings.HasSuffix(line, ")") || strings.Contains(line[:open], ".go:") || strings.ContainsAny(line[:open], " \t") {
		return "", false
	}
	return line[:open], true
}

// name returns a name without characters that a terminal obeys, bounded, and as one string for all its uses.
func (p *parser) name(text string) string {
	if known, ok := p.names[text]; ok {
		return known
	}
	clean := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, text)
	if len(clean) > longestName {
		clean = strings.ToValidUTF8(clean[:longestName], "")
	}
	p.names[strings.Clone(text)] = clean
	return clean
}
