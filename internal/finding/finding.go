// Package finding is how what was found wrong is told to people: by how bad it is,
// with what was seen and what to do. The checks before a join and the rules of the
// doctor both speak so.
package finding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Severity is how bad it is.
type Severity string

const (
	Error   Severity = "error"   // something does not work
	Warning Severity = "warning" // something will not, or works badly
	Info    Severity = "info"    // worth knowing
)

// Severities are all, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Info} }

// AtLeast is whether s is as bad as the other, or worse.
func (s Severity) AtLeast(other Severity) bool { return s.Compare(other) <= 0 }

// Compare orders severities, the worst first.
func (s Severity) Compare(other Severity) int {
	return slices.Index(Severities(), s) - slices.Index(Severities(), other)
}

// noun is the word that counts findings of a severity.
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

// coloured marks text in the colour of the severity.
func (s Severity) coloured(text string) string {
	switch s {
	case Error:
		return ui.Bad(text)
	case Warning:
		return ui.Warn(text)
	}
	return text
}

// Told is one thing that was found.
type Told struct {
	Severity Severity
	By       string // the check or rule
	What     string
	On       string   // the nodes that have it, if there are several nodes
	Evidence []string // what was seen
	Remedy   string
}

// Write writes a line on the whole of a node, then each thing with what was seen
// and what to do about it. Windows is ltsc2022, or empty.
func Write(p *ui.Page, node, windows, summary string, all []Told) error {
	if windows != "" {
		node += " (" + windows + ")"
	}
	if _, err := fmt.Fprintf(p, "%s: %s\n", node, summary); err != nil {
		return err
	}
	return WriteList(p, all)
}

// WriteList writes each thing with the nodes that have it, what was seen and what to
// do about it.
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

// Counts returns how many findings there are in words, such as "2 errors, 1
// warning, 3 notes"; empty if there are none.
func Counts(count func(Severity) int) string {
	var counts []string
	for _, s := range Severities() {
		if n := count(s); n > 0 {
			counts = append(counts, Several(n, s.noun()))
		}
	}
	return strings.Join(counts, ", ")
}

// Several is a number of things: 1 rule, 2 rules.
func Several(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
