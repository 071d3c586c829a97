package readiness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

// The results of a case. Only Proved says that the cluster can do what the case is about.
const (
	Proved = "proved"
	Failed = "failed"
	// NotPossible means that this cluster cannot prove the case, as it lacks something, or that a spec
	// skipped itself.
	NotPossible = "notPossible"
	// NotRun means that the cluster could perhaps prove the case, but that the run did not try.
	NotRun = "notRun"
)

// maxReport bounds the file of a report, in bytes.
const maxReport = 64 << 20

// Report is the result of a run.
type Report struct {
	Cluster    string `json:"cluster"`    // the API server's URL
	Kubernetes string `json:"kubernetes"` // its version
	// Begin is the time when the run began.
	Begin   time.Time    `json:"begin"`
	Cases   []CaseResult `json:"cases"`
	Summary Summary      `json:"summary"`
	Seconds float64      `json:"seconds"`
}

// Summary counts cases by their results.
type Summary struct {
	Proved      int `json:"proved"`
	Failed      int `json:"failed"`
	NotPossible int `json:"notPossible"`
	NotRun      int `json:"notRun"`
}

// CaseResult is the result of a case.
type CaseResult struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	Proves   string `json:"proves"`
	Result   string `json:"result"` // proved, failed, notPossible or notRun
	// Message is the cause of a failure, or the reason why the case was not proved; "" if it was.
	Message string  `json:"message"`
	Seconds float64 `json:"seconds"`
	// Specs are the results of the specs of e2e.test; empty if the case has a probe or was not run.
	Specs []SpecResult `json:"specs"`
	// Nodes are the results of the probe on each Windows node; empty if the case has specs or was not run.
	Nodes []NodeResult `json:"nodes"`
}

// SpecResult is the result of a spec.
type SpecResult struct {
	Name    string  `json:"name"`
	Result  string  `json:"result"`  // the same words as for a case; notPossible: the spec skipped itself
	Message string  `json:"message"` // "" if the spec passed
	Seconds float64 `json:"seconds"`
}

// NodeResult is the result of a probe on a Windows node.
type NodeResult struct {
	Name    string  `json:"name"`
	Build   string  `json:"build"`   // the build of the node's Windows, such as 10.0.20348.2849
	Result  string  `json:"result"`  // as that of a case
	Message string  `json:"message"` // "" if the probe passed
	Seconds float64 `json:"seconds"`
}

func newReport(f Facts, cases []Case) Report {
	r := Report{Cluster: f.Server, Kubernetes: f.Kubernetes, Begin: time.Now().UTC().Truncate(time.Second)}
	for _, c := range cases {
		r.Cases = append(r.Cases, CaseResult{ID: c.ID, Category: c.Category, Proves: c.Proves, Result: NotRun,
			Message: "the run ended before it"})
	}
	return r
}

// ended fills in the summary.
func (r *Report) ended(took time.Duration) {
	r.Seconds, r.Summary = took.Seconds(), Summary{}
	for _, c := range r.Cases {
		switch c.Result {
		case Proved:
			r.Summary.Proved++
		case Failed:
			r.Summary.Failed++
		case NotPossible:
			r.Summary.NotPossible++
		default:
			r.Summary.NotRun++
		}
	}
}

// failure returns a *FailedError or an *IncompleteError, or nil if all cases that the cluster can prove
// are proved.
func (r Report) failure() error {
	var failed, notRun []string
	proved := false
	for _, c := range r.Cases {
		switch c.Result {
		case Failed:
			failed = append(failed, c.ID)
		case NotRun:
			notRun = append(notRun, c.ID)
		case Proved:
			proved = true
		}
	}
	switch {
	case len(failed) > 0:
		return &FailedError{Cases: failed}
	case len(notRun) > 0 || !proved:
		return &IncompleteError{NotRun: notRun}
	}
	return nil
}

// Failure returns the error with which a run with this report ended: a *FailedError, an *IncompleteError
// or nil.
func (r Report) Failure() error { return r.failure() }

// Names returns the proved cases for -o name.
func (r Report) Names() (all []string) {
	for _, c := range r.Cases {
		if c.Result == Proved {
			all = append(all, "case/"+c.ID)
		}
	}
	return all
}

// ReportError reports a file that is not the report of a run.
type ReportError struct {
	Name string
	Err  error
}

func (e *ReportError) Error() string {
	return fmt.Sprintf("%s is not the report of a run: %v; `swdt readiness run` writes one", e.Name, e.Err)
}

func (e *ReportError) Unwrap() error { return e.Err }

// ReadReport reads the JSON of a report, and counts its results itself. Its errors are *ReportErrors,
// which contain name, the name of the file.
func ReadReport(text []byte, name string) (Report, error) {
	if len(text) > maxReport {
		return Report{}, &ReportError{Name: name, Err: fmt.Errorf("it has more than %d bytes", maxReport)}
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, &ReportError{Name: name, Err: err}
	}
	if len(r.Cases) == 0 {
		return Report{}, &ReportError{Name: name, Err: fmt.Errorf("it has no cases")}
	}
	r.ended(time.Duration(r.Seconds * float64(time.Second)))
	return r, nil
}

// LoadReport reads the report of an earlier run. path is the folder of its results, or its readiness.json.
func LoadReport(path string) (Report, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, ReportName)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, fmt.Errorf("there is no %s; name the folder of the results of `swdt readiness run`, or its %s",
			path, ReportName)
	}
	if err != nil {
		return Report{}, fmt.Errorf("read the report: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxReport+1))
	if err != nil {
		return Report{}, fmt.Errorf("read %s: %w", path, err)
	}
	return ReadReport(text, path)
}

// Columns returns the columns of the table of a Report. If wide is true, they are those of -o wide.
func Columns(wide bool) []string {
	if wide {
		return []string{"CASE", "CATEGORY", "RESULT", "TIME", "PROVES", "MESSAGE"}
	}
	return []string{"CASE", "RESULT", "TIME", "MESSAGE"}
}

// WriteText writes a line for each case, and then a line that counts the results.
func (r Report) WriteText(p *ui.Page) error {
	var rows [][]string
	for _, c := range r.Cases {
		row := []string{c.ID, coloured(c.Result), took(c), c.Message}
		if p.Wide {
			row = []string{c.ID, c.Category, coloured(c.Result), took(c), c.Proves, c.Message}
		}
		rows = append(rows, row)
	}
	if err := ui.TableOr(p, "no cases", Columns(p.Wide), rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p, r.Sentence())
	return err
}

// Sentence returns how many of the cases are proved, and why the others are not.
func (r Report) Sentence() string {
	text := fmt.Sprintf("%d of %d cases proved", r.Summary.Proved, len(r.Cases))
	var rest []string
	for _, part := range []struct {
		count int
		words string
	}{{r.Summary.Failed, "failed"}, {r.Summary.NotPossible, "not possible here"}, {r.Summary.NotRun, "not run"}} {
		if part.count > 0 {
			rest = append(rest, fmt.Sprintf("%d %s", part.count, part.words))
		}
	}
	if len(rest) > 0 {
		text += ", " + strings.Join(rest, ", ")
	}
	return text + " in " + ui.Seconds(time.Duration(r.Seconds*float64(time.Second)))
}

func coloured(result string) string {
	switch result {
	case Proved:
		return ui.Good(result)
	case Failed:
		return ui.Bad(result)
	}
	return ui.Warn(ui.Words(result))
}

// took returns the time of a case in words; "" if the case was not run.
func took(c CaseResult) string {
	if c.Result == NotRun || c.Seconds == 0 {
		return ""
	}
	return ui.Seconds(time.Duration(c.Seconds * float64(time.Second)))
}
