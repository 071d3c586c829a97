package trial

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Names returns the specs for -o name.
func (p Plan) Names() []string {
	names := []string{}
	for _, s := range p.Specs {
		names = append(names, "spec/"+s.Name)
	}
	return names
}

// Columns returns the columns of the table of a Plan. If wide is true, they are those of -o wide.
func Columns(wide bool) []string {
	if wide {
		return []string{"SPEC", "SOURCE"}
	}
	return []string{"SPEC"}
}

// WriteText writes a line for each spec, the findings, and the number of specs.
func (p Plan) WriteText(page *ui.Page) error {
	var rows [][]string
	for _, s := range p.Specs {
		row := []string{s.Name}
		if page.Wide {
			row = append(row, fmt.Sprintf("%s:%d", s.File, s.Line))
		}
		rows = append(rows, row)
	}
	if err := ui.Table(page, Columns(page.Wide), rows); err != nil {
		return err
	}
	if err := WriteFindings(page, p.Findings); err != nil {
		return err
	}
	_, err := fmt.Fprintf(page, "%d of %d specs of e2e.test %s match\n", len(p.Specs), p.Total, p.Binary.Version)
	return err
}

// WriteFindings writes what the checks have found.
func WriteFindings(page *ui.Page, all []finding.Problem) error {
	var entries []finding.Entry
	for _, f := range all {
		entries = append(entries, f.Entry())
	}
	return finding.WriteList(page, entries)
}
