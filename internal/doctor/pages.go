package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Listed is a rule as `swdt doctor --list-rules` and the documentation show it.
type Listed struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Means    string   `json:"means"`
	Severity Severity `json:"severity"`
	Needs    []string `json:"needs"`
	Remedy   string   `json:"remedy,omitempty"`
	Link     string   `json:"link"`
}

// List are rules as they are shown.
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
	return ui.Table(w, []string{"RULE", "AT WORST", "WHAT IS RIGHT"}, rows)
}

// WritePage writes the documentation's page on all rules, in Markdown: a table, and
// a section a rule.
func WritePage(w io.Writer) error {
	rules := Rules()
	var page strings.Builder
	fmt.Fprintf(&page, "`swdt doctor` lets %d rules look at a node. Each says what should be right, what follows where it is not, and what to do.\n\n", len(rules))
	page.WriteString("| rule | at worst | what is right |\n|---|---|---|\n")
	for _, r := range rules {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s | %s |\n", r.ID, r.ID, r.Severity, r.Title)
	}
	for _, r := range rules {
		fmt.Fprintf(&page, "\n## %s\n\n%s.\n\nWhere it is not: %s\n\n", r.ID, capital(r.Title), r.Means)
		if r.Remedy != "" {
			fmt.Fprintf(&page, "What to do: %s.\n\n", strings.TrimSuffix(r.Remedy, "."))
		}
		fmt.Fprintf(&page, "%s at worst. It looks at: %s. More: <%s>\n", capital(string(r.Severity)), strings.Join(r.Needs, ", "), r.Link)
	}
	_, err := io.WriteString(w, page.String())
	return err
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
