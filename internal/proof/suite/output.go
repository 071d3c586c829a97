package suite

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
)

const (
	// maxLine bounds a line of the output that is looked at, in bytes. The rest of a longer line is
	// ignored.
	maxLine = 16 << 10
	// readAtOnce bounds the output that one look reads, in bytes.
	readAtOnce = 16 << 20
)

// Progress is the state of a run, as its output shows it. A spec can print lines that imitate Ginkgo's,
// so a Progress is only for display, and is not a result.
type Progress struct {
	Done, Failed, Skipped int // numbers of specs; Done counts all that have ended
	Total                 int // the number of selected specs
	// Current is the name of the spec that has been running since Since; "" between specs.
	Current string
	Since   time.Time
	// Ended is the name of the spec that has just ended, with its outcome; "" if none has.
	Ended   string
	Outcome Outcome
}

// follower reads the output of a run while it is written.
type follower struct {
	file    *os.File
	size    int64
	line    []byte // the beginning of a line whose end was not read yet
	known   map[string]bool
	end     *regexp.Regexp // matches the line at the end of a spec
	state   Progress
	changed func(Progress)

	afterRule bool // the last line was the horizontal rule that precedes the name of a spec
}

func newFollower(path string, specs []Spec, changed func(Progress)) (*follower, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &follower{file: file, known: map[string]bool{}, changed: changed,
		end: regexp.MustCompile(`^[•+SRP] (?:\[([A-Z!]+)[^\]]*\] )?\[[0-9.]+ seconds\]$`)}
	for _, spec := range specs {
		f.known[spec.Name] = true
	}
	f.state.Total = len(specs)
	return f, nil
}

func (f *follower) Close() { _ = f.file.Close() }

// read reads what was added since the last call, and returns the size of the output so far, in bytes.
func (f *follower) read() (int64, error) {
	buffer := make([]byte, 64<<10)
	for begin := f.size; f.size-begin < readAtOnce; {
		n, err := f.file.Read(buffer)
		f.size += int64(n)
		f.take(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f.size, err
		}
	}
	return f.size, nil
}

func (f *follower) take(text []byte) {
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if room := maxLine - len(f.line); room > 0 {
			f.line = append(f.line, line[:min(room, len(line))]...)
		}
		if !whole {
			return
		}
		f.look(strings.TrimSpace(string(f.line)))
		f.line, text = f.line[:0], rest
	}
}

const rule = "------------------------------"

// look looks at one line. Ginkgo prints a rule and the spec's name before a spec, and a line such as
// "• [FAILED] [1.234 seconds]" after it.
func (f *follower) look(line string) {
	afterRule := f.afterRule
	f.afterRule = line == rule
	if name := f.specOf(line); afterRule && f.state.Current == "" && name != "" {
		f.state.Current, f.state.Since, f.state.Ended = name, time.Now(), ""
		f.report()
		return
	}
	if f.state.Current == "" {
		return
	}
	outcome, ok := f.endOf(line)
	if !ok {
		return
	}
	f.state.Done++
	switch outcome {
	case Failed:
		f.state.Failed++
	case Skipped:
		f.state.Skipped++
	}
	f.state.Ended, f.state.Outcome, f.state.Current = f.state.Current, outcome, ""
	f.report()
}

func (f *follower) report() {
	if f.changed != nil {
		f.changed(f.state)
	}
}

// specOf returns the spec whose name is in a line, perhaps with its labels in brackets; "" if there is
// none.
func (f *follower) specOf(line string) string {
	if f.known[line] {
		return line
	}
	if at := strings.LastIndex(line, " ["); at > 0 && f.known[line[:at]] {
		return line[:at]
	}
	return ""
}

// endOf returns the outcome in the line that Ginkgo prints at the end of a spec.
func (f *follower) endOf(line string) (Outcome, bool) {
	found := f.end.FindStringSubmatch(line)
	if found == nil {
		return "", false
	}
	switch found[1] {
	case "":
		return Passed, true
	case "SKIPPED":
		return Skipped, true
	case "FLAKEY":
		return Passed, true
	}
	return Failed, true
}

const (
	// runIDWithin bounds the part of the output in which RunID looks, in bytes.
	runIDWithin = 1 << 20
	banner      = "Running Suite: "
)

// RunID returns the ID of the run whose output is in a file, or "" if the output has none (yet). e2e.test
// labels each namespace of the run with e2e-run=ID. It prints the ID before it runs a spec; RunID
// ignores all that follows Ginkgo's banner, since specs can print the line, too.
func RunID(output string) (string, error) {
	file, err := os.Open(output)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, runIDWithin))
	if err != nil {
		return "", err
	}
	runID := regexp.MustCompile(
		`Starting e2e run "([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})" on Ginkgo node`)
	before, _, _ := strings.Cut("\n"+string(text), "\n"+banner)
	if found := runID.FindStringSubmatch(before); found != nil {
		return found[1], nil
	}
	return "", nil
}
