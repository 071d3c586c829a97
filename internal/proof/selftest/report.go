package selftest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

// format is the version of the report's format.
const format = 1

// Report is the result of a run. It has no names of machines or users, no addresses and no keys.
type Report struct {
	Format int       `json:"format"`
	Swdt   string    `json:"swdt"`
	Taken  time.Time `json:"taken"`
	System System    `json:"system"`
	Claims []Result  `json:"claims"`
	// Differences are the answers in which the node differs from swdt's stand-ins.
	Differences []Difference `json:"differences"`
	// Guesses are the beliefs about Windows without a source, with what the run says about each. A report of an earlier
	// version has none.
	Guesses []Judged `json:"guesses"`
	Summary Summary  `json:"summary"`
	CleanUp string   `json:"cleanUp"` // why not all could be removed; "" if the node is as before
}

// System is the node's Windows.
type System struct {
	Kind         string `json:"kind"` // windows, wine or simulated
	Product      string `json:"product"`
	Build        string `json:"build"`
	Architecture string `json:"architecture"`
	OpenSSH      string `json:"openSSH"` // that of the server; "" if the node is reached without OpenSSH
	Way          string `json:"way"`     // ssh or kubernetes
}

// kindWindows is the kind of a system that is no stand-in.
const kindWindows = "windows"

// Result is the result of one claim.
type Result struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Proves  string   `json:"proves"`
	Grade   Grade    `json:"grade"`
	Outcome Outcome  `json:"outcome"`
	Reason  string   `json:"reason"` // "" if the claim passed
	Answers []Answer `json:"answers"`
	Seconds float64  `json:"seconds"`
}

// Summary counts the outcomes.
type Summary struct {
	Passed     int `json:"passed"`
	Failed     int `json:"failed"`
	Impossible int `json:"impossible"`
	NotRun     int `json:"notRun"`
}

func newResult(c Claim) Result {
	return Result{ID: c.ID, Title: c.Title, Proves: c.Proves, Grade: c.Grade, Answers: []Answer{}}
}

// List is all claims, as `swdt selftest --list` prints them.
type List struct {
	Claims []Listed `json:"claims"`
}

// Listed is a claim that is not tried.
type Listed struct {
	ID     string `json:"id"`
	Grade  Grade  `json:"grade"`
	Title  string `json:"title"`
	Proves string `json:"proves"`
}

// NewList returns the list of all claims.
func NewList() List {
	list := List{Claims: []Listed{}}
	for _, c := range Claims() {
		list.Claims = append(list.Claims, Listed{c.ID, c.Grade, c.Title, c.Proves})
	}
	return list
}

// complete counts the outcomes, and compares the answers with those of the stand-ins.
func (r *Report) complete() {
	r.Summary = Summary{}
	for i, c := range r.Claims {
		switch c.Outcome {
		case Passed:
			r.Summary.Passed++
		case Failed:
			r.Summary.Failed++
		case Impossible:
			r.Summary.Impossible++
		default:
			r.Summary.NotRun++
		}
		if c.Answers == nil {
			r.Claims[i].Answers = []Answer{}
		}
	}
	r.Differences = differencesFromStandIns(*r)
	r.Guesses = r.judged()
}

// Failure returns a *FailedError if claims failed, and another error if no claim passed.
func (r Report) Failure() error {
	if r.Summary.Failed > 0 {
		return &FailedError{r.Summary.Failed}
	}
	if r.Summary.Passed == 0 {
		return fmt.Errorf("no claim passed: %d are not possible on this node, %d were not run", r.Summary.Impossible,
			r.Summary.NotRun)
	}
	return nil
}

// mostReport is more than any run writes: a report has some tens of kilobytes.
const mostReport = 16 << 20

// FormatError reports a report that another version of swdt has written.
type FormatError struct {
	Format int    // that of the report
	Swdt   string // the version that wrote it, as the report says
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("it has the format %d, and this swdt reads the format %d; use swdt %s, which wrote it", e.Format,
		format, ui.Printable(e.Swdt))
}

// Load reads a report that a run has written. A stranger may have written it: all texts of the result are
// as in the file, and whoever prints them must make them printable.
func Load(path string) (Report, error) {
	r, err := load(path)
	if err != nil {
		return Report{}, fmt.Errorf("read the report %s: %w", path, err)
	}
	return r, nil
}

func load(path string) (r Report, err error) {
	file, err := os.Open(path)
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Report{}, errors.New("there is no such file; name one")
	case errors.As(err, &failed):
		return Report{}, fmt.Errorf("%w; check the path and its permissions", failed.Err) // the caller names the file
	case err != nil:
		return Report{}, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostReport+1))
	if err != nil {
		return Report{}, err
	}
	if len(text) > mostReport {
		return Report{}, fmt.Errorf("it is larger than %d bytes, so it is no report of `swdt selftest`", mostReport)
	}
	var head struct {
		Format int    `json:"format"`
		Swdt   string `json:"swdt"`
	}
	// The format comes first: another one may have fields of other types.
	if err := json.Unmarshal(text, &head); err != nil {
		return Report{}, notReport(err)
	}
	if head.Format != 0 && head.Format != format {
		return Report{}, &FormatError{head.Format, head.Swdt}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, notReport(err)
	}
	if r.Format != format || len(r.Claims) == 0 {
		return Report{}, notReport(nil)
	}
	return r, nil
}

// notReport returns the error for a file that is no report. cause is the error of reading it as JSON, or nil.
// Only the cause of wrong syntax says something to a user: others are about types of this program.
func notReport(cause error) error {
	const remedy = `name the JSON file that "swdt selftest --out" has written`
	if syntax, ok := errors.AsType[*json.SyntaxError](cause); ok {
		return fmt.Errorf("it is no report, at byte %d: %w; %s", syntax.Offset, syntax, remedy)
	}
	return errors.New("it is no report; " + remedy)
}

// Record returns the report as the answers of a stand-in are recorded: without the time and the
// reasons, which differ between runs.
func (r Report) Record() Report {
	recorded := Report{Format: format, System: r.System, Differences: []Difference{}, Guesses: []Judged{}}
	for _, c := range r.Claims {
		c.Seconds, c.Reason, c.Title, c.Proves = 0, "", "", ""
		recorded.Claims = append(recorded.Claims, c)
	}
	return recorded
}
