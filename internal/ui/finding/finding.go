// Package finding prints findings for people: ordered by severity, with the evidence and
// the remedy. The checks before a join and the rules of the doctor both use it.
package finding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Severity is the severity of a finding.
type Severity string

const (
	Error   Severity = "error"   // something does not work
	Warning Severity = "warning" // something will stop working, or works badly
	Info    Severity = "info"    // worth knowing
)

// Severities returns all severities, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Info} }

// AtLeast reports whether s is as bad as other, or worse.
func (s Severity) AtLeast(other Severity) bool { return s.Compare(other) <= 0 }

// Compare orders severities, the worst first.
func (s Severity) Compare(other Severity) int {
	return slices.Index(Severities(), s) - slices.Index(Severities(), other)
}

// noun returns the word for findings of a severity.
func (s Severity) noun() string {
	if s == Info {
		return "note"
	}
	return string(s)
}

func (s Severity) mark() string {
	switch s {
	case Error:
		return "✗"
	case Warning:
		return "!"
	}
	return "·"
}

// coloured marks text with the colour of the severity.
func (s Severity) coloured(text string) string {
	switch s {
	case Error:
		return ui.Bad(text)
	case Warning:
		return ui.Warn(text)
	}
	return text
}

// Told is a finding in the form that Write prints.
type Told struct {
	Severity Severity
	By       string // the name of the check or rule that made the finding
	What     string
	On       string   // the nodes that have the finding, if several were examined
	Evidence []string // the observed facts
	Remedy   string
}

// Write writes a summary line for a node, then each finding with its evidence and remedy.
// windows is the node's Windows version, such as ltsc2022; if it is "", the line omits it.
func Write(p *ui.Page, node, windows, summary string, all []Told) error {
	if windows != "" {
		node += " (" + windows + ")"
	}
	if _, err := fmt.Fprintf(p, "%s: %s\n", node, summary); err != nil {
		return err
	}
	return WriteList(p, all)
}

// WriteList writes each finding with its nodes, evidence and remedy.
func WriteList(p *ui.Page, all []Told) error {
	var rows [][]string
	for _, t := range all {
		rows = append(rows, []string{t.Severity.coloured(t.Severity.mark() + " " + t.By), t.What})
		if t.On != "" {
			rows = append(rows, []string{"", "on " + t.On})
		}
		for _, seen := range t.Evidence {
			rows = append(rows, []string{"", "seen: " + seen})
		}
		if t.Remedy != "" {
			rows = append(rows, []string{"", "→ " + t.Remedy})
		}
	}
	return ui.Lines(p, rows)
}

// Counts returns the numbers of findings in words, such as "2 errors, 1 warning, 3 notes";
// "" if there are none.
func Counts(count func(Severity) int) string {
	var counts []string
	for _, s := range Severities() {
		if n := count(s); n > 0 {
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
