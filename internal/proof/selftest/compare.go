package selftest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Difference is an answer that two nodes do not have in common.
type Difference struct {
	StandIn string `json:"standIn"` // such as simulated; "" if two reports are compared
	Claim   string `json:"claim"`
	Key     string `json:"key"`   // of the answer; "outcome" for that of the claim
	Here    string `json:"here"`  // this node's answer
	There   string `json:"there"` // the other node's answer
}

// none stands for an answer that a node did not give.
const none = "(no answer)"

// compareClaims returns the differences between the claims that both nodes tried.
func compareClaims(here, there []Result) (all []Difference) {
	for _, a := range here {
		i := slices.IndexFunc(there, func(r Result) bool { return r.ID == a.ID })
		if i < 0 || a.Outcome == NotRun || there[i].Outcome == NotRun {
			continue
		}
		b := there[i]
		if a.Outcome != b.Outcome {
			all = append(all, Difference{Claim: a.ID, Key: "outcome", Here: string(a.Outcome), There: string(b.Outcome)})
		}
		for _, key := range keys(a.Answers, b.Answers) {
			one, two := valueOf(a.Answers, key), valueOf(b.Answers, key)
			if one != two {
				all = append(all, Difference{Claim: a.ID, Key: key, Here: one, There: two})
			}
		}
	}
	return all
}

func keys(lists ...[]Answer) (all []string) {
	for _, list := range lists {
		for _, a := range list {
			if !slices.Contains(all, a.Key) {
				all = append(all, a.Key)
			}
		}
	}
	return all
}

func valueOf(answers []Answer, key string) string {
	for _, a := range answers {
		if a.Key == key {
			return a.Value
		}
	}
	return none
}

// Comparison has the differences of two reports.
type Comparison struct {
	Here        System       `json:"here"`
	There       System       `json:"there"`
	Differences []Difference `json:"differences"`
}

// Compare compares two reports.
func Compare(here, there Report) Comparison {
	return Comparison{Here: here.System, There: there.System,
		Differences: append([]Difference{}, compareClaims(here.Claims, there.Claims)...)}
}

// String returns a line that identifies the Windows.
func (s System) String() string {
	parts := []string{s.Product, s.Build, s.Architecture}
	if s.Kind != kindWindows {
		parts = append(parts, "("+s.Kind+")")
	}
	return strings.Join(parts, " ")
}

// WriteText writes a line for each difference.
func (c Comparison) WriteText(p *ui.Page) error {
	rows := make([][]string, 0, len(c.Differences))
	for _, d := range c.Differences {
		rows = append(rows, []string{d.Claim, d.Key, d.Here, d.There})
	}
	if _, err := fmt.Fprintf(p, "first:  %s\nsecond: %s\n", c.Here, c.There); err != nil {
		return err
	}
	return ui.TableOr(p, "no differences", ComparisonColumns(p.Wide), rows)
}

// ComparisonColumns returns the columns of the table of a Comparison.
func ComparisonColumns(bool) []string { return []string{"CLAIM", "ANSWER", "FIRST", "SECOND"} }
