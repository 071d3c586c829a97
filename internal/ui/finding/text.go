package finding

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Entry is a finding in a list for people.
type Entry struct {
	By string // the name of the check or rule that made the finding
	Finding
	On   string   // the nodes that have the finding, if several were examined
	Seen []string // the evidence of several nodes; if set, it replaces Finding.Evidence
	// Notes are more facts about the finding, one a line.
	Notes []string
}

// Write writes a summary line for a node, then each finding with its evidence and remedy.
// windows is the node's Windows version, such as ltsc2022; "" if the version is unknown.
func Write(p *ui.Page, node, windows, summary string, all []Entry) error {
	if windows != "" {
		node += " (" + windows + ")"
	}
	if _, err := fmt.Fprintf(p, "%s: %s\n", node, summary); err != nil {
		return err
	}
	return WriteList(p, all)
}

// WriteList writes each finding with its nodes, evidence and remedy.
func WriteList(p *ui.Page, all []Entry) error {
	var rows [][]string
	for _, e := range all {
		rows = append(rows, []string{e.Severity.coloured(e.Severity.mark() + " " + e.By), e.What})
		if e.On != "" {
			rows = append(rows, []string{"", "on " + e.On})
		}
		for _, seen := range e.seen() {
			rows = append(rows, []string{"", "seen: " + seen})
		}
		for _, note := range e.Notes {
			rows = append(rows, []string{"", note})
		}
		if e.Remedy != "" {
			rows = append(rows, []string{"", "→ " + e.Remedy})
		}
	}
	return ui.Lines(p, rows)
}

func (e Entry) seen() []string {
	if len(e.Seen) == 0 && e.Evidence != "" {
		return []string{e.Evidence}
	}
	return e.Seen
}

// Counts returns the numbers of findings in words, such as "2 errors, 1 warning, 3 notes";
// "" if there are none.
func Counts[F Found](all []F) string {
	var counts []string
	for _, s := range Severities() {
		if n := Count(all, s); n > 0 {
			counts = append(counts, Several(n, s.noun()))
		}
	}
	return strings.Join(counts, ", ")
}

// Several returns a number with its noun: 1 rule, 2 rules.
func Several(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
