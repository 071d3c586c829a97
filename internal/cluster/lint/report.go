package lint

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Report is the result of a check.
type Report struct {
	// Texts counts the files that were read, Objects those with a kind of Kubernetes, and Windows those whose pods are
	// for Windows.
	Texts   int `json:"texts"`
	Objects int `json:"objects"`
	Windows int `json:"windows"`
	// Fixed are the findings that --fix has removed from the texts; with DryRun, those that it would remove.
	Fixed  []Fixed `json:"fixed"`
	DryRun bool    `json:"dryRun"`
	// Findings are those that count and those that are ignored, the worst first.
	Findings []Finding `json:"findings"`
	// More counts findings beyond those that a report lists.
	More   int      `json:"more"`
	Unread []Unread `json:"unread"`
}

func (r *reading) report(c checking) Report {
	report := Report{Findings: sorted(c.found), More: c.more, Unread: r.unread}
	for _, o := range r.objects {
		if o.checked != everything {
			continue
		}
		report.Objects++
		if o.pods != nil && o.pods.system.name == "windows" {
			report.Windows++
		}
	}
	if report.Findings == nil {
		report.Findings = []Finding{}
	}
	if report.Unread == nil {
		report.Unread = []Unread{}
	}
	return report
}

// counted returns the findings that are not ignored.
func (r Report) counted() (all []finding.Finding) {
	for _, f := range r.Findings {
		if f.Ignored == "" {
			all = append(all, f.Finding)
		}
	}
	return all
}

// Has reports whether there is a finding of severity s or worse that is not ignored.
func (r Report) Has(s finding.Severity) bool { return finding.Has(r.counted(), s) }

// mostPlaces bounds the places of a finding that the text names.
const mostPlaces = 5

// WriteText writes a summary, the findings with all their places, and what was not read. The wide form has the sources
// and the findings that are ignored.
func (r Report) WriteText(p *ui.Page) error {
	summary := finding.Counts(r.counted())
	if summary == "" {
		summary = "nothing found"
	}
	if n := len(r.Findings) - len(r.counted()); n > 0 {
		summary += fmt.Sprintf(", %d ignored", n)
	}
	if err := r.writeFixed(p); err != nil {
		return err
	}
	files := ""
	if r.Texts > 0 {
		files = finding.Several(r.Texts, "file") + ", "
	}
	_, err := fmt.Fprintf(p, "%s (read: %s%s, %s for Windows)\n", summary, files, finding.Several(r.Objects, "object"), withPods(r.Windows))
	if err != nil {
		return err
	}
	if err := finding.WriteList(p, r.entries(p.Wide)); err != nil {
		return err
	}
	if n := r.fixable(finding.Warning); n > 0 {
		if _, err := fmt.Fprintf(p, "--fix changes the files for %s\n", finding.Several(n, "finding")); err != nil {
			return err
		}
	}
	if r.More > 0 {
		if _, err := fmt.Fprintf(p, "and %s: name fewer files\n", finding.Several(r.More, "more finding")); err != nil {
			return err
		}
	}
	for _, u := range r.Unread {
		if _, err := fmt.Fprintf(p, "not read: %s: %s\n", u.place(), u.Why); err != nil {
			return err
		}
	}
	return nil
}

// writeFixed writes what was fixed, a line each.
func (r Report) writeFixed(p *ui.Page) error {
	word := "fixed"
	if r.DryRun {
		word = "to fix"
	}
	for _, f := range r.Fixed {
		if _, err := fmt.Fprintf(p, "%s: %s:%d, %s: %s %s (%s)\n", word, f.File, f.Line, f.Object, f.Field, f.Change, f.Rule); err != nil {
			return err
		}
	}
	return nil
}

// fixable counts the findings that Fix with a severity removes.
func (r Report) fixable(least finding.Severity) (n int) {
	for _, f := range r.Findings {
		if f.fixedBy(least) {
			n++
		}
	}
	return n
}

func withPods(n int) string {
	if n == 1 {
		return "1 of them with pods"
	}
	return fmt.Sprintf("%d of them with pods", n)
}

func (u Unread) place() string {
	if u.Line == 0 {
		return u.File
	}
	return fmt.Sprintf("%s:%d", u.File, u.Line)
}

// entries returns the findings for people. Those that differ only in their places are one.
func (r Report) entries(wide bool) (all []finding.Entry) {
	type words struct {
		rule, what, remedy string
		severity           finding.Severity
	}
	indices := map[words]int{}
	left := map[int]int{}
	for _, f := range r.Findings {
		if f.Ignored != "" && !wide {
			continue
		}
		e := finding.Entry{By: f.Rule, Finding: f.Finding}
		if wide {
			e.Remedy += " (" + f.Source + ")"
		}
		if f.Ignored != "" {
			e.What += " (ignored: " + f.Ignored + ")"
		}
		is := words{f.Rule, e.What, e.Remedy, f.Severity}
		i, ok := indices[is]
		if !ok {
			i = len(all)
			indices[is] = i
			all = append(all, e)
		}
		if !wide && len(all[i].Seen) >= mostPlaces {
			left[i]++
			continue
		}
		all[i].Seen = append(all[i].Seen, f.place())
	}
	for i, n := range left {
		all[i].Seen = append(all[i].Seen, fmt.Sprintf("and in %s, which -o wide lists", finding.Several(n, "more place")))
	}
	return all
}

// place returns where a finding is, such as "web.yaml:12:7, Pod web, spec.hostPID: true".
func (f Finding) place() string {
	var parts []string
	if f.File != "" {
		parts = append(parts, fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column))
	}
	for _, part := range []string{f.Object, f.Field} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ", ")
	if f.Evidence != "" {
		text += " (" + f.Evidence + ")"
	}
	return text
}
