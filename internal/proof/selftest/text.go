package selftest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// WriteText writes a line for each claim, then the differences and the counts. The claims that --only leaves out are
// only counted.
func (r Report) WriteText(p *ui.Page) error {
	rows := make([][]string, 0, len(r.Claims))
	for _, c := range r.Claims {
		if c.Reason == notInOnly {
			continue
		}
		rows = append(rows, []string{c.ID, c.Outcome.coloured(), c.Title, c.Reason})
	}
	if err := ui.Table(p, []string{"CLAIM", "RESULT", "TITLE", "REASON"}, rows); err != nil {
		return err
	}
	if p.Wide {
		if err := r.writeDifferences(p); err != nil {
			return err
		}
	}
	if err := r.writeGuesses(p); err != nil {
		return err
	}
	if r.CleanUp != "" {
		if _, err := fmt.Fprintln(p, ui.Bad(r.CleanUp)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p, "%s: %s\n%s\n", r.System, r.Summary, r.differ(p.Wide))
	return err
}

// writeGuesses writes the guesses about which the run says something, and all if the page is wide. A run of a stand-in
// settles none, since the stand-in answers by them.
func (r Report) writeGuesses(p *ui.Page) error {
	var rows [][]string
	open := 0
	for _, g := range r.Guesses {
		if g.Verdict == Open {
			open++
		}
		if p.Wide || g.Verdict != Open && r.System.Kind == kindWindows {
			rows = append(rows, []string{strconv.Itoa(g.Number), g.Verdict.coloured(), g.Belief})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := ui.Table(p, []string{"GUESS", "IS", "BELIEF"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p, "%d of %d guesses stay open; docs/guesses.md says how to settle each by hand\n", open, len(r.Guesses))
	return err
}

func (v Verdict) coloured() string {
	switch v {
	case Right:
		return ui.Good("right")
	case Wrong:
		return ui.Bad("wrong")
	}
	return "open"
}

// differ returns how many answers differ from those of each stand-in.
func (r Report) differ(listed bool) string {
	counts := map[string]int{}
	for _, d := range r.Differences {
		counts[d.StandIn]++
	}
	parts := make([]string, 0, len(StandIns()))
	for _, name := range StandIns() {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	text := "answers that differ from those of swdt's stand-ins for Windows: " + strings.Join(parts, ", ")
	if !listed && len(r.Differences) > 0 {
		text += " (-o wide lists them)"
	}
	return text
}

func (r Report) writeDifferences(p *ui.Page) error {
	rows := make([][]string, 0, len(r.Differences))
	for _, d := range r.Differences {
		rows = append(rows, []string{d.StandIn, d.Claim, d.Key, d.Here, d.There})
	}
	return ui.TableOr(p, "no differences", []string{"STAND-IN", "CLAIM", "ANSWER", "THIS NODE", "STAND-IN'S"}, rows)
}

// String returns the counts in words.
func (s Summary) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d not possible, %d not run", s.Passed, s.Failed, s.Impossible, s.NotRun)
}

func (o Outcome) coloured() string {
	switch o {
	case Passed:
		return ui.Good("passed")
	case Failed:
		return ui.Bad("failed")
	case Impossible:
		return ui.Warn("not possible")
	}
	return "not run"
}

// WriteText writes a line for each claim.
func (l List) WriteText(p *ui.Page) error {
	rows := make([][]string, 0, len(l.Claims))
	for _, c := range l.Claims {
		rows = append(rows, []string{c.ID, c.Grade.String(), c.Proves})
	}
	return ui.Table(p, []string{"CLAIM", "GRADE", "PROVES"}, rows)
}

// String returns the grade in words.
func (g Grade) String() string {
	switch g {
	case Reads:
		return "reads only"
	case Makes:
		return "makes things of its own"
	case Settings:
		return "changes settings"
	}
	return "restarts the node"
}
