package netpol

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Explanation has the tables of policies for the pods of a model.
type Explanation struct {
	Pods  []string         `json:"pods"` // as NAMESPACE/POD
	Ports []string         `json:"ports"`
	Cases []CaseExplaining `json:"cases"`
	// Invented reports whether an ipBlock decides by addresses that no cluster gave to the pods.
	Invented bool `json:"invented"`
}

// CaseExplaining has the tables that the policies of a case mean.
type CaseExplaining struct {
	Name     string   `json:"name"`
	Proves   string   `json:"proves"`
	Policies []string `json:"policies"` // as NAMESPACE/NAME
	Cells    int      `json:"cells"`
	Denied   int      `json:"denied"` // the number of cells that the policies deny
	Tables   []Table  `json:"tables"`
	// LeftOut has the policies of other kinds in the files. A cluster obeys them too.
	LeftOut []LeftOut `json:"leftOut"`
}

// Explain returns what the policies of cases mean. It contacts no cluster.
func Explain(m Model, cases []Case) (Explanation, error) {
	m = m.withAddresses()
	e := Explanation{Pods: m.podNames(), Ports: m.portNames(), Cases: []CaseExplaining{}}
	for _, c := range cases {
		policies, err := m.realized(c.Policies)
		if err != nil {
			return e, err
		}
		cells, err := m.cells(policies)
		if err != nil {
			return e, err
		}
		explained := CaseExplaining{Name: c.Name, Proves: c.Proves, Policies: c.policyNames(), Cells: len(cells),
			Tables:  m.tables(cells, func(i int) rune { return cells[i].expected() }),
			LeftOut: append([]LeftOut{}, c.LeftOut...)}
		for _, cell := range cells {
			if !cell.verdict.Allowed() {
				explained.Denied++
			}
		}
		e.Cases = append(e.Cases, explained)
		e.Invented = e.Invented || c.hasBlock()
	}
	return e, nil
}

// writeLeftOut writes which policies a table does not consider.
func writeLeftOut(page *ui.Page, all []LeftOut) error {
	sentence := leftOutSentence(all)
	if sentence == "" {
		return nil
	}
	_, err := fmt.Fprintln(page, ui.Warn(sentence))
	return err
}

func (m Model) podNames() []string {
	names := []string{}
	for _, p := range m.Pods {
		names = append(names, p.Name())
	}
	return names
}

func (m Model) portNames() []string {
	names := []string{}
	for _, p := range m.Ports {
		names = append(names, p.String())
	}
	return names
}

// WriteText writes the tables of each case.
func (e Explanation) WriteText(page *ui.Page) error {
	for _, c := range e.Cases {
		title := c.Name
		if c.Proves != "" {
			title += ": " + c.Proves
		}
		if _, err := fmt.Fprintf(page, "%s\npolicies: %s\n", title, strings.Join(c.Policies, ", ")); err != nil {
			return err
		}
		for _, t := range c.Tables {
			if err := t.writeText(page, e.Pods); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(page, "%d of %d cells are denied\n", c.Denied, c.Cells); err != nil {
			return err
		}
		if err := writeLeftOut(page, c.LeftOut); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(page); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(page, "rows are sources, columns targets: "+legend)
	if err == nil && e.Invented {
		_, err = fmt.Fprintln(page,
			ui.Warn("an ipBlock decides by addresses; those of these pods are invented, in 10.244.0.0/16"))
	}
	return err
}
