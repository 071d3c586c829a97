package order

import (
	"slices"
	"strings"
)

// Choice is the order that a user chooses for rows, by the column of a table or by a JSONPath. The zero value keeps
// the rows as they are.
type Choice struct {
	Column     string // as typed
	Path       string // a JSONPath such as {.cores} or .cores
	Descending bool
}

// Parse reads a choice: a column or a JSONPath, with a - before it for the descending order, as ps of procps has it. A
// JSONPath begins with { or a dot.
func Parse(text string) (c Choice) {
	text, c.Descending = strings.CutPrefix(strings.TrimSpace(text), "-")
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, ".") {
		c.Path = text
	} else {
		c.Column = text
	}
	return c
}

// Find returns the index of a column in a header, ignoring case and the arrow at the column by which a live table is
// sorted; -1: there is none.
func Find(header []string, column string) int {
	return slices.IndexFunc(header, func(title string) bool {
		return strings.EqualFold(strings.TrimRight(title, "↑↓"), column)
	})
}
