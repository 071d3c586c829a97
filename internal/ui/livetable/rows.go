// Package livetable sorts and filters the rows of a table, and redraws a table on a
// terminal while a person changes its order and filter with keys.
//
//   - rows.go: columns, order and filter
//   - view.go: the order and filter that the typed keys choose
//   - keys.go: reading keys from the terminal
//   - screen.go: the drawing
package livetable

import (
	"slices"
	"strings"
)

// Choice is the order of a table's rows, and the filter that selects them.
type Choice struct {
	Sort    string // the name of a column
	Filter  string
	Reverse bool // set only by keys
}

// Column is a property by which rows can be sorted. Numbers are sorted in descending
// order, names in natural order. Without Compare, rows keep the order in which they
// are listed.
type Column[R any] struct {
	Name    string
	Compare func(a, b R) int
}

// Names returns the names of the columns.
func Names[R any](columns []Column[R]) (all []string) {
	for _, c := range columns {
		all = append(all, c.Name)
	}
	return all
}

// Matches reports whether one of the texts contains the filter, ignoring case.
func (c Choice) Matches(texts ...string) bool {
	wanted := strings.ToLower(c.Filter)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

// Sort sorts rows by the column that c names; equal rows keep their order.
func Sort[R any](rows []R, columns []Column[R], c Choice) {
	i := slices.IndexFunc(columns, func(column Column[R]) bool { return column.Name == c.Sort })
	if i >= 0 && columns[i].Compare != nil {
		slices.SortStableFunc(rows, columns[i].Compare)
	}
	if c.Reverse {
		slices.Reverse(rows)
	}
}
