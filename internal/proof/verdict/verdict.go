package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/proof/evidence"
	"github.com/swdt-dev/swdt/internal/proof/suite"
)

// Verdict is the judgement on a spec after all runs.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"  // it passed, and failed in no run
	Failed  Verdict = "failed"  // it failed, and passed in no run
	Flaky   Verdict = "flaky"   // it passed in some runs and failed in others
	Skipped Verdict = "skipped" // it skipped itself in all runs that reached it
	NotRun  Verdict = "notRun"  // no run reached it
)

// Verdicts returns all verdicts, the worst first.
func Verdicts() []Verdict { return []Verdict{Failed, Flaky, NotRun, Skipped, Passed} }

// Spec is the verdict on one spec.
type Spec struct {
	suite.Spec
	Verdict Verdict `json:"verdict"`
	// Message is the last failure, or the reason why the spec was skipped or not run; "" if it passed.
	Message  string `json:"message"`
	Location string `json:"location"` // the place of the failure in the source, as FILE:LINE
	// Counts are the numbers of runs by their outcome.
	Counts  Counts `json:"counts"`
	Seconds Spread `json:"seconds"` // the durations of the runs in which the spec passed or failed
	Tries   []Try  `json:"tries"`   // in the order of the runs
	Output  string `json:"output"`  // the output of the last run in which the spec failed, shortened
	// Evidence has a bundle for each run in which the spec failed, if evidence was collected.
	Evidence []evidence.Bundle `json:"evidence"`
}

// Counts are numbers of runs.
type Counts struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	NotRun  int `json:"notRun"`
}

// Ran returns the number of runs that passed or failed.
func (c Counts) Ran() int { return c.Passed + c.Failed }

// Spread is how much durations differ, in seconds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// Try is the result of a spec in one run.
type Try struct {
	Run     int           `json:"run"` // counts from 1
	Outcome suite.Outcome `json:"outcome"`
	State   string        `json:"state"` // Ginkgo's word, such as panicked
	Message string        `json:"message"`
	Seconds float64       `json:"seconds"`
}

// Judge returns the verdicts on all specs of these runs, the worst first, then by name. Specs of the same
// name are one spec.
func Judge(runs []suite.Report) []Spec {
	byName := map[string]*Spec{}
	for i, run := range runs {
		for _, result := range run.Results {
			s := byName[result.Name]
			if s == nil {
				s = &Spec{Spec: result.Spec, Tries: []Try{}, Evidence: []evidence.Bundle{}}
				byName[result.Name] = s
			}
			s.add(i+1, result)
		}
	}
	all := make([]Spec, 0, len(byName))
	for _, s := range byName {
		s.judge()
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Spec) int {
		return cmp.Or(cmp.Compare(a.Verdict.rank(), b.Verdict.rank()), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (v Verdict) rank() int { return slices.Index(Verdicts(), v) }

func (s *Spec) add(run int, r suite.Result) {
	s.Tries = append(s.Tries, Try{Run: run, Outcome: r.Outcome, State: r.State, Seconds: r.Seconds,
		Message: suite.Shortened(r.Message, 2000)})
	switch r.Outcome {
	case suite.Passed:
		s.Counts.Passed++
		return
	case suite.Failed:
		s.Counts.Failed++
		s.Message, s.Location, s.Output = r.Message, r.Location, r.Output
		return
	case suite.Skipped:
		s.Counts.Skipped++
	default:
		s.Counts.NotRun++
	}
	if s.Counts.Failed == 0 {
		s.Message = r.Message
	}
}

func (s *Spec) judge() {
	c := s.Counts
	switch {
	case c.Failed > 0 && c.Passed > 0:
		s.Verdict = Flaky
	case c.Failed > 0:
		s.Verdict = Failed
	case c.Passed > 0:
		s.Verdict, s.Message = Passed, ""
	case c.Skipped > 0:
		s.Verdict = Skipped
	default:
		s.Verdict = NotRun
	}
	var took []float64
	for _, t := range s.Tries {
		if t.Outcome == suite.Passed || t.Outcome == suite.Failed {
			took = append(took, t.Seconds)
		}
	}
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	s.Seconds = Spread{Min: took[0], Median: took[len(took)/2], Max: took[len(took)-1]}
}

// Words returns the verdict with its numbers, such as "flaky (2 of 5 failed)".
func (s Spec) Words() string {
	switch s.Verdict {
	case Flaky:
		return fmt.Sprintf("flaky (%d of %d failed)", s.Counts.Failed, s.Counts.Ran())
	case NotRun:
		return "not run"
	case Failed, Passed:
		if s.Counts.Ran() > 1 {
			return fmt.Sprintf("%s (%d of %d)", s.Verdict, s.Counts.Ran(), s.Counts.Ran())
		}
	}
	return string(s.Verdict)
}
