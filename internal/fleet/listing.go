package fleet

import (
	"io"
	"slices"

	"github.com/swdt-dev/swdt/internal/ui"
)

// WriteListings writes one table for all nodes. If there are several nodes, the first column is the
// node's name. The table omits nodes that failed, since their errors are printed to stderr.
func WriteListings[T any](w io.Writer, results []Result[T], list func(T) ui.Listing) error {
	var header []string
	var rows [][]string
	var nothing string
	for _, result := range results {
		if result.Err != nil {
			continue
		}
		t := list(result.Value)
		header, nothing = t.Header, t.Nothing
		for _, row := range t.Rows {
			if len(results) > 1 {
				row = slices.Insert(row, 0, result.Name())
			}
			rows = append(rows, row)
		}
	}
	if len(results) > 1 && header != nil {
		header = slices.Insert(header, 0, "NODE")
	}
	if header == nil {
		return nil
	}
	return ui.TableOr(w, nothing, header, rows)
}
