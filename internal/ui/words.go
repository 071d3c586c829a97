package ui

import (
	"strings"
	"unicode"
)

// Words returns a state of the JSON output as words for people: "rolled back" for
// rolledBack.
func Words(state string) string {
	var b strings.Builder
	for i, r := range state {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Alternatives joins words as in a sentence: "text, json or yaml".
func Alternatives(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}
