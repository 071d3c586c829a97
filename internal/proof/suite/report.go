package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// reportName is the name of Ginkgo's JSON report in the folder of a run.
	reportName = "report.json"

	// Bounds of a report. The report of all 7,600 specs of e2e.test has about 30 MB without output.
	maxReport = 1 << 30  // bytes
	maxSpecs  = 100_000  // in one report
	maxName   = 4 << 10  // bytes
	maxText   = 64 << 10 // the bytes that a Result keeps of a message or an output
)

// Outcome is the result of one spec in one run.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // the spec ran, and skipped itself with a reason
	NotRun  Outcome = "notRun"  // the spec matched, but the run ended before it
)

// Result is the result of one spec in one run.
type Result struct {
	Spec
	Outcome Outcome `json:"outcome"`
	// State is Ginkgo's word: passed, failed, panicked, timedout, interrupted, aborted, skipped or
	// pending.
	State string `json:"state"`
	// Message is the failure or the reason of the skip; "" if the spec passed.
	Message string `json:"message"`
	// Location is the place of the failure in the source, as FILE:LINE; "" if there is none.
	Location string    `json:"location"`
	Begin    time.Time `json:"begin,omitzero"`
	Seconds  float64   `json:"seconds"`
	// Output has the lines that the spec has printed, shortened in its middle. Only failed specs have it.
	Output string `json:"output,omitempty"`
}

// Report are the results of one run.
type Report struct {
	Results []Result
	// Filtered is the number of specs that the filters left out, or that the run did not reach.
	Filtered int
	// Total is the number of all specs of the program.
	Total int
	// Suite are failures outside of specs, such as in the preparation of the suite.
	Suite []Result
	// Reasons are Ginkgo's reasons why the suite failed as a whole, such as an interruption.
	Reasons []string
	Seconds float64
	// Unreached has the specs that an interrupted run did not reach or that its filters left out: a JUnit file does not
	// distinguish them. Cut reports whether the file ends early, so that specs are missing.
	Unreached []Spec
	Cut       bool
}

// ReportError reports a file that is not a report of Ginkgo.
type ReportError struct {
	Name string
	What string
	Err  error // nil if no other error caused it
}

func (e *ReportError) Error() string {
	text := e.Name + " " + e.What
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *ReportError) Unwrap() error { return e.Err }

func readReportFile(path string) (Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return Report{}, err
	}
	defer file.Close()
	return ReadReport(file, path)
}

// ReadReport reads a JSON report of Ginkgo 2. Its errors are *ReportErrors, which contain name, the
// name of the file. The results are in the order of the report, without specs that filters left out.
func ReadReport(r io.Reader, name string) (Report, error) {
	bounded := &io.LimitedReader{R: r, N: maxReport}
	p := &parser{decoder: json.NewDecoder(bounded)}
	err := p.list(p.suite)
	switch {
	case bounded.N == 0:
		return Report{}, &ReportError{Name: name, What: fmt.Sprintf("has more than %d bytes", maxReport)}
	case err != nil:
		return Report{}, &ReportError{Name: name, What: "is not a whole report of Ginkgo 2", Err: err}
	case !p.found:
		return Report{}, &ReportError{Name: name, What: "has no list of specs"}
	}
	return p.report, nil
}

// parser reads a report piece by piece, since the output of all specs may not fit into memory.
type parser struct {
	decoder *json.Decoder
	report  Report
	specs   int
	found   bool // the report has a list of specs
}

var errShape = errors.New("it has another structure")

// list reads a JSON list, and calls element to read each of its elements. null is an empty list.
func (p *parser) list(element func() error) error {
	token, err := p.decoder.Token()
	if err != nil || token == nil {
		return err
	}
	if token != json.Delim('[') {
		return errShape
	}
	for p.decoder.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err = p.decoder.Token()
	return err
}

func (p *parser) suite() error {
	token, err := p.decoder.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return errShape
	}
	for p.decoder.More() {
		key, err := p.decoder.Token()
		if err != nil {
			return err
		}
		if err := p.field(key); err != nil {
			return err
		}
	}
	_, err = p.decoder.Token()
	return err
}

func (p *parser) field(key json.Token) error {
	switch key {
	case "SpecReports":
		p.found = true
		return p.list(p.spec)
	case "SpecialSuiteFailureReasons":
		var reasons []string
		err := p.decoder.Decode(&reasons)
		for _, reason := range reasons[:min(len(reasons), 20)] {
			p.report.Reasons = append(p.report.Reasons, Shortened(reason, maxName))
		}
		return err
	case "PreRunStats":
		var stats struct{ TotalSpecs int }
		err := p.decoder.Decode(&stats)
		p.report.Total += max(0, stats.TotalSpecs)
		return err
	case "RunTime":
		var took time.Duration
		err := p.decoder.Decode(&took)
		p.report.Seconds += max(0, took.Seconds())
		return err
	}
	var other json.RawMessage
	return p.decoder.Decode(&other)
}

// specReport has the fields of Ginkgo's types.SpecReport that a Result needs.
type specReport struct {
	ContainerHierarchyTexts    []string
	ContainerHierarchyLabels   [][]string
	LeafNodeType               string
	LeafNodeText               string
	LeafNodeLabels             []string
	LeafNodeLocation           location
	State                      string
	StartTime                  time.Time
	RunTime                    time.Duration
	NumAttempts                int
	Failure                    *failure
	CapturedGinkgoWriterOutput string
	CapturedStdOutErr          string
}

type failure struct {
	Message        string
	Location       location
	ForwardedPanic string
}

type location struct {
	FileName   string
	LineNumber int
}

func (l location) String() string {
	if l.FileName == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", belowE2E(l.FileName), l.LineNumber)
}

func (p *parser) spec() error {
	var s specReport
	if err := p.decoder.Decode(&s); err != nil {
		return err
	}
	if p.specs++; p.specs > maxSpecs {
		return fmt.Errorf("it has more than %d specs", maxSpecs)
	}
	result, err := s.result()
	switch {
	case err != nil:
		return err
	case s.LeafNodeType != "It":
		if result.Outcome == Failed || result.Outcome == Skipped && result.Message != "" {
			result.Name = strings.TrimSpace("[" + Shortened(s.LeafNodeType, 100) + "] " + result.Name)
			p.report.Suite = append(p.report.Suite, result)
		}
	case s.filtered():
		p.report.Filtered++
	default:
		p.report.Results = append(p.report.Results, result)
	}
	return nil
}

// filtered reports whether the spec did not run at all: a filter left it out, the suite ended before it,
// or its author has marked it as pending. A spec that skipped itself has a message.
func (s specReport) filtered() bool {
	return s.State == "pending" || s.State == "skipped" && (s.Failure == nil || s.Failure.Message == "")
}

func (s specReport) result() (Result, error) {
	texts := slices.Concat(s.ContainerHierarchyTexts, []string{s.LeafNodeText})
	texts = slices.DeleteFunc(texts, func(t string) bool { return t == "" })
	r := Result{State: s.State, Begin: s.StartTime, Seconds: max(0, s.RunTime.Seconds())}
	r.Spec = Spec{Name: strings.Join(texts, " "), Labels: s.labels(), File: belowE2E(s.LeafNodeLocation.FileName),
		Line: s.LeafNodeLocation.LineNumber}
	if len(r.Name) > maxName {
		return r, fmt.Errorf("the name of a spec has more than %d bytes", maxName)
	}
	switch s.State {
	case "passed":
		r.Outcome = Passed
	case "skipped", "pending":
		r.Outcome = Skipped
	case "failed", "panicked", "timedout", "interrupted", "aborted":
		r.Outcome = Failed
	default:
		return r, fmt.Errorf("a spec has the state %.100q", s.State)
	}
	if f := s.Failure; f != nil {
		r.Message, r.Location = f.Message, f.Location.String()
		if f.ForwardedPanic != "" {
			r.Message += ": " + f.ForwardedPanic
		}
		r.Message = Shortened(r.Message, maxText)
	}
	if r.Outcome == Failed {
		r.Output = Shortened(s.CapturedStdOutErr+s.CapturedGinkgoWriterOutput, maxText)
	}
	return r, nil
}

func (s specReport) labels() []string {
	all := slices.Concat(slices.Concat(s.ContainerHierarchyLabels...), s.LeafNodeLabels)
	slices.Sort(all)
	all = slices.Compact(all)
	if all == nil {
		all = []string{}
	}
	return all[:min(len(all), 100)]
}

// belowE2E returns the part of a source file's path below test/e2e.
func belowE2E(path string) string {
	path = strings.ReplaceAll(path, `\`, "/")
	if _, below, ok := strings.Cut(path, "/test/e2e/"); ok {
		path = below
	}
	return Shortened(path, maxName)
}

// Shortened returns text with at most limit bytes, plus a note in place of its middle. The result is
// valid UTF-8.
func Shortened(text string, limit int) string {
	if len(text) > limit {
		left := len(text) - limit
		text = text[:limit/2] + fmt.Sprintf("\n… %d bytes left out …\n", left) + text[len(text)-limit/2:]
	}
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
