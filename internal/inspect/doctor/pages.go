package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Listed is a rule in the form that `swdt doctor --list-rules` prints.
type Listed struct {
	ID       string           `json:"id"`
	Title    string           `json:"title"`
	Means    string           `json:"means"`
	Severity finding.Severity `json:"severity"`
	Needs    []string         `json:"needs"`
	Remedy   string           `json:"remedy"`
	Link     string           `json:"link"`
}

// List returns rules in the form that `swdt doctor --list-rules -o json` prints.
func List(rules []Rule) []Listed {
	all := make([]Listed, len(rules))
	for i, r := range rules {
		all[i] = Listed{r.ID, r.Title, r.Means, r.Severity, r.Needs, r.Remedy, r.Link}
	}
	return all
}

// WriteList writes rules as a table.
func WriteList(w io.Writer, rules []Rule) error {
	var rows [][]string
	for _, r := range rules {
		rows = append(rows, []string{r.ID, string(r.Severity), r.Title})
	}
	return ui.Table(w, []string{"RULE", "SEVERITY", "EXPECTS"}, rows)
}

// WritePage writes the documentation of all rules as a Markdown page: a table, then one
// section for each rule.
func WritePage(w io.Writer) error {
	rules := Rules()
	var page strings.Builder
	page.WriteString(fmt.Sprintf("`swdt doctor` checks a node against %d rules. ", len(rules)))
	page.WriteString("Each section below states what the rule expects, what happens otherwise, and what to do. " +
		"The severity is the highest that a finding of the rule can have.\n\n")
	page.WriteString("| rule | severity | expects |\n|---|---|---|\n")
	for _, r := range rules {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s | %s |\n", r.ID, r.ID, r.Severity, r.Title)
	}
	for _, r := range rules {
		fmt.Fprintf(&page, "\n## %s\n\nExpects: %s.\n\nOtherwise: %s\n\n", r.ID, r.Title, r.Means)
		if r.Remedy != "" {
			fmt.Fprintf(&page, "Remedy: %s.\n\n", strings.TrimSuffix(r.Remedy, "."))
		}
		fmt.Fprintf(&page, "Severity: %s. Facts: %s. More: <%s>\n", r.Severity, strings.Join(r.Needs, ", "), r.Link)
	}
	_, err := io.WriteString(w, page.String())
	return err
}
