package readiness

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// List is the list of cases.
type List struct {
	Cases []Case `json:"cases"`
}

// Names returns the cases for -o name.
func (l List) Names() (all []string) {
	for _, c := range l.Cases {
		all = append(all, "case/"+c.ID)
	}
	return all
}

// ListColumns returns the columns of the table of a List. If wide is true, they are those of -o wide.
func ListColumns(wide bool) []string {
	header := []string{"CASE", "CATEGORY", "BY", "NEEDS", "PROVES"}
	if wide {
		header = append(header, "WHY", "CLASSIC", "FAULT OF THE CLASSIC CASE")
	}
	return header
}

// WriteText writes a line for each case, and then a line that counts the cases.
func (l List) WriteText(p *ui.Page) error {
	var rows [][]string
	for _, c := range l.Cases {
		row := []string{c.ID, c.Category, c.by(), strings.Join(c.Needs, ","), c.Proves}
		if p.Wide {
			row = append(row, c.Why, c.Classic.ID, c.Classic.Fault)
		}
		rows = append(rows, row)
	}
	if err := ui.TableOr(p, "no cases", ListColumns(p.Wide), rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p, l.sentence())
	return err
}

// by returns how the case is proved, in a few words.
func (c Case) by() string {
	if c.Probe != "" {
		return "probe"
	}
	count := 0
	for _, s := range c.Specs {
		count += s.Count
	}
	if count == 1 {
		return "1 spec"
	}
	return fmt.Sprintf("%d specs", count)
}

func (l List) sentence() string {
	probes, classic, faults, impossible := 0, 0, 0, 0
	for _, c := range l.Cases {
		probes += count(c.Probe != "")
		classic += count(c.Classic.ID != "")
		faults += count(c.Classic.Fault != "")
		impossible += count(c.Impossible != "")
	}
	noun := "cases"
	if len(l.Cases) == 1 {
		noun = "case"
	}
	text := fmt.Sprintf("%d %s: %d by specs of e2e.test, %d by probes of swdt", len(l.Cases), noun, len(l.Cases)-probes,
		probes)
	if classic > 0 {
		text += fmt.Sprintf("; %d stand for classic test cases, of which %d have a fault", classic, faults)
	}
	if impossible > 0 {
		text += fmt.Sprintf("; %d cannot be proved anywhere", impossible)
	}
	return text
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
