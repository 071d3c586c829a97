package ui

import (
	"strings"
	"unicode"
)

// Words writes a state that JSON has as rolledBack for people: "rolled back".
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
