package ui

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/order"
)

// Table writes rows below a header, columns aligned, two spaces apart. An empty
// cell is written as -. The rows are in the order that w asks for, if w is a Page.
func Table(w io.Writer, header []string, rows [][]string) error {
	if page, ok := w.(*Page); ok && page.Sort.Column != "" {
		var err error
		if rows, err = sorted(page.Sort, header, rows); err != nil {
			return err
		}
	}
	all := [][]string{header}
	for _, row := range rows {
		filled := make([]string, len(row))
		for i, cell := range row {
			filled[i] = cmp.Or(cell, "-")
		}
		all = append(all, filled)
	}
	return Lines(w, all)
}

// UnknownColumnError is the error of a table that does not have the column by which its rows shall be sorted.
type UnknownColumnError struct {
	Column string
	Header []string
}

func (e *UnknownColumnError) Error() string {
	return "the table has no column " + e.Column + "; its columns are " + strings.Join(e.Header, ", ")
}

// sorted returns the rows in the order that by asks for.
func sorted(by order.Choice, header []string, rows [][]string) ([][]string, error) {
	column := order.Find(header, by.Column)
	if column < 0 {
		return nil, &UnknownColumnError{by.Column, header}
	}
	cells := make([]string, len(rows))
	for i, row := range rows {
		if column < len(row) {
			cells[i] = unmarked(row[column])
		}
	}
	inOrder := make([][]string, len(rows))
	for to, from := range order.By(cells, by.Descending) {
		inOrder[to] = rows[from]
	}
	return inOrder, nil
}

// TableOr is like Table. If there are no rows, it writes one line with the given text instead,
// since a header alone would not show whether anything was checked.
func TableOr(w io.Writer, nothing string, header []string, rows [][]string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, nothing)
		return err
	}
	return Table(w, header, rows)
}

// Listing is a table of objects of one kind.
type Listing struct {
	Nothing string // printed if there are no rows
	Header  []string
	Rows    [][]string
}

// Lines writes rows with their columns aligned, two spaces apart. Empty cells at the end
// of a row are omitted. Each cell is made Printable, so it has one line.
func Lines(w io.Writer, rows [][]string) error {
	var widths []int
	printable := make([][]string, len(rows))
	for n, row := range rows {
		for i, cell := range row {
			cell = Printable(cell)
			printable[n] = append(printable[n], cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	var out strings.Builder
	for _, row := range printable {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-width(cell)+2))
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}
