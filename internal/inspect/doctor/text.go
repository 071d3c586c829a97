package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// TextOptions configure WriteText.
type TextOptions struct {
	// Remedies completes the swdt commands in a remedy for exactly these nodes.
	Remedies func(nodes []string, remedy string) string
	// Wide requests all names of nodes and all evidence, however long the lists are.
	Wide bool
}

// These limit the output for several nodes, unless TextOptions.Wide is set.
const (
	maxNames    = 5
	maxEvidence = 3
)

// WriteText writes the reports of one or more nodes as text: the summary lines of the nodes (see
// headlines), then each finding once with its nodes, evidence and remedy, then the skipped rules
// with the reason. It lists nodes in the order of the reports.
func WriteText(p *ui.Page, reports []Report, o TextOptions) error {
	for _, line := range headlines(reports, o) {
		if _, err := fmt.Fprintln(p, line); err != nil {
			return err
		}
	}
	var all []finding.Entry
	for _, g := range groupFindings(reports) {
		all = append(all, g.entry(len(reports), o))
	}
	if err := finding.WriteList(p, all); err != nil {
		return err
	}
	return writeReasons(p, reports, o)
}

// headlines returns the summary lines; nodes with the same summary share a line.
func headlines(reports []Report, o TextOptions) (lines []string) {
	var nodes grouping
	for _, r := range reports {
		text := ": " + r.Summary()
		if r.Windows != "" {
			text = " (" + r.Windows + ")" + text
		}
		nodes.add(text, r.Node)
	}
	for _, text := range nodes.order {
		lines = append(lines, o.list(nodes.names[text])+text)
	}
	return lines
}

// writeReasons writes why rules were skipped, each reason once.
func writeReasons(w io.Writer, reports []Report, o TextOptions) error {
	var nodes grouping
	for _, r := range reports {
		for _, reason := range r.reasons() {
			nodes.add(reason, r.Node)
		}
	}
	for _, reason := range nodes.order {
		on := ""
		if of := nodes.names[reason]; len(of) < len(reports) {
			on = " on " + o.list(of)
		}
		if _, err := fmt.Fprintln(w, "skipped"+on+": "+reason); err != nil {
			return err
		}
	}
	return nil
}

// reasons returns one text for each reason why rules were skipped: the names of the rules, then the
// reason.
func (r Report) reasons() (all []string) {
	var rules grouping
	for _, s := range r.Skipped {
		rules.add(s.Why, s.Rule)
	}
	for _, why := range rules.order {
		all = append(all, strings.Join(rules.names[why], ", ")+": "+why)
	}
	return all
}

// grouped is a finding with the nodes that share it.
type grouped struct {
	finding.Fault // Fault.Evidence is empty; evidence has the evidence of all nodes
	nodes         []string
	evidence      grouping
}

// groupFindings merges the findings that differ only in their nodes and their evidence. The merged
// findings are sorted by severity, the worst first, then in the order of the rules.
func groupFindings(reports []Report) (all []*grouped) {
	index := map[finding.Fault]*grouped{}
	for _, r := range reports {
		for _, f := range r.Findings {
			key := f
			key.Evidence = ""
			g := index[key]
			if g == nil {
				g = &grouped{Fault: key}
				index[key] = g
				all = append(all, g)
			}
			if !slices.Contains(g.nodes, r.Node) {
				g.nodes = append(g.nodes, r.Node)
			}
			g.evidence.add(f.Evidence, r.Node)
		}
	}
	if len(reports) > 1 {
		rank := map[string]int{}
		for i, rule := range Rules() {
			rank[rule.ID] = i
		}
		slices.SortStableFunc(all, func(a, b *grouped) int {
			return cmp.Or(a.Severity.Compare(b.Severity), cmp.Compare(rank[a.Rule], rank[b.Rule]))
		})
	}
	return all
}

// entry returns the finding in the form that is printed. reports is the number of nodes
// that were examined.
func (g *grouped) entry(reports int, o TextOptions) finding.Entry {
	e := g.Entry()
	switch {
	case reports == 1:
	case len(g.nodes) == reports:
		e.On = fmt.Sprintf("all %d nodes", reports)
	default:
		e.On = o.list(g.nodes)
	}
	for _, seen := range g.evidence.order {
		of := g.evidence.names[seen]
		switch {
		case seen == "":
			continue
		case len(of) < len(g.nodes):
			seen = o.list(of) + ": " + seen
		}
		e.Seen = append(e.Seen, seen)
	}
	if more := len(e.Seen) - maxEvidence; more > 0 && !o.Wide {
		e.Seen = append(e.Seen[:maxEvidence], fmt.Sprintf("and %d more; -o wide prints them", more))
	}
	if g.Remedy != "" {
		e.Remedy = o.Remedies(g.nodes, g.Remedy)
	}
	return e
}

// list joins names of nodes. If there are many names and o.Wide is false, it returns only the first
// names and the number of the others.
func (o TextOptions) list(nodes []string) string {
	if more := len(nodes) - maxNames; more > 1 && !o.Wide {
		return fmt.Sprintf("%s and %d more", strings.Join(nodes[:maxNames], ", "), more)
	}
	return strings.Join(nodes, ", ")
}

// grouping collects names by key, and keeps the order in which the keys were added.
type grouping struct {
	order []string
	names map[string][]string
}

func (g *grouping) add(key, name string) {
	if g.names == nil {
		g.names = map[string][]string{}
	}
	if g.names[key] == nil {
		g.order = append(g.order, key)
	}
	if !slices.Contains(g.names[key], name) {
		g.names[key] = append(g.names[key], name)
	}
}

// Summary returns the report in a few words, such as "2 errors, 1 warning in 57 rules,
// 12 skipped".
func (r Report) Summary() string {
	summary := cmp.Or(finding.Counts(r.Findings), "nothing wrong") + " in " + finding.Several(len(r.Rules), "rule")
	if n := len(r.Skipped); n > 0 {
		summary += fmt.Sprintf(", %d skipped", n)
	}
	return summary
}
