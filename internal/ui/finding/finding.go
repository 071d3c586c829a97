// Package finding has the type of all findings, and prints them, ordered by severity, with
// the evidence and the remedy. The checks before a join, the rules of the doctor and the
// collectors of a bundle all return a Finding. The report that lists the finding adds its
// origin.
//
//   - finding.go: a finding and its severity
//   - origin.go: findings with the check or rule that made them, as in -o json
//   - warn.go: warnings of a command that goes on
//   - text.go: findings for people
package finding

import (
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Finding is a detected fault, or a hint.
type Finding struct {
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Evidence string   `json:"evidence"` // the observed facts
	Remedy   string   `json:"remedy"`
}

// New returns a finding with its evidence and text. It has no severity and no remedy yet.
func New(evidence, what string, args ...any) Finding {
	return Finding{What: fmt.Sprintf(what, args...), Evidence: evidence}
}

// As returns f with severity s.
func (f Finding) As(s Severity) Finding {
	f.Severity = s
	return f
}

// Remedied returns f with a remedy.
func (f Finding) Remedied(format string, args ...any) Finding {
	f.Remedy = fmt.Sprintf(format, args...)
	return f
}

// Severity is the severity of a finding.
type Severity string

const (
	Error   Severity = "error"   // something does not work
	Warning Severity = "warning" // something will stop working, or works badly
	Info    Severity = "info"    // worth knowing
)

// Severities returns all severities, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Info} }

// AtLeast reports whether s is as severe as other, or more severe.
func (s Severity) AtLeast(other Severity) bool { return s.Compare(other) <= 0 }

// Compare orders severities, the worst first.
func (s Severity) Compare(other Severity) int {
	return slices.Index(Severities(), s) - slices.Index(Severities(), other)
}

// noun returns the word for one finding of severity s.
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
