package diag

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Report is the result of `swdt diag`.
type Report struct {
	File string `json:"file"` // the bundle
	Manifest
}

// WriteText writes a line for each node, and the bundle's file.
func (r Report) WriteText(p *ui.Page) error {
	if err := r.writeNodes(p); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p, r.File)
	return err
}

// WriteText writes the profile and the time of a bundle, and a line for each node.
func (m Manifest) WriteText(p *ui.Page) error {
	_, err := fmt.Fprintf(p, "profile %s, gathered %s by swdt %s\n\n", m.Profile, m.Created.UTC().Format(time.RFC3339),
		m.SWDT)
	if err != nil {
		return err
	}
	return m.writeNodes(p)
}

func (m Manifest) writeNodes(w io.Writer) error {
	var rows [][]string
	for _, n := range m.Nodes {
		row := []string{n.Name, n.Result, n.Windows, "", "",
			ui.Seconds(time.Duration(n.Seconds * float64(time.Second))), n.Error}
		if len(n.Collectors) > 0 {
			row[3] = fmt.Sprintf("%d of %d", len(n.Collectors)-n.Count(Failed)-n.Count(Late), len(n.Collectors))
		}
		if n.Examined() {
			row[4] = strconv.Itoa(len(n.Findings))
		}
		rows = append(rows, row)
	}
	return ui.Table(w, []string{"NODE", "RESULT", "WINDOWS", "COLLECTORS", "FINDINGS", "TOOK", "MESSAGE"}, rows)
}

// Failures returns a *fleet.Error that names the nodes whose gathering failed, or nil if no
// gathering failed.
func (m Manifest) Failures() error {
	failed := &fleet.Error{Total: len(m.Nodes)}
	for _, n := range m.Nodes {
		if n.Result == Failed {
			failed.Failed = append(failed.Failed, fleet.Failure{Name: n.Name, Err: n.Err})
		}
	}
	if len(failed.Failed) == 0 {
		return nil
	}
	return failed
}

// NodeReport is the report about one node of a bundle.
type NodeReport struct {
	Nodes []NodeRecord `json:"nodes"` // always one node
}

// WriteText writes the result of each collector, and the findings.
func (r NodeReport) WriteText(p *ui.Page) error {
	n := r.Nodes[0]
	if n.Error != "" {
		if _, err := fmt.Fprintf(p, "%s: %s\n\n", n.Result, n.Error); err != nil {
			return err
		}
	}
	var rows [][]string
	for _, c := range n.Collectors {
		kept := ""
		if len(c.Files) > 0 {
			kept = finding.Several(len(c.Files), "file")
		}
		rows = append(rows, []string{c.Name, c.Result, strings.Join(c.Tables, ", "),
			kept, strings.ReplaceAll(c.Error, "\n", "; ")})
	}
	if err := ui.Table(p, []string{"COLLECTOR", "RESULT", "TABLES", "FILES", "MESSAGE"}, rows); err != nil ||
		len(n.Findings) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(p); err != nil {
		return err
	}
	rows = nil
	for _, f := range n.Findings {
		rows = append(rows, []string{string(f.Severity), f.What, f.Evidence, f.Remedy})
	}
	return ui.Table(p, []string{"SEVERITY", "FINDING", "SEEN", "REMEDY"}, rows)
}

// TableReport is the result of `swdt diag show` for one table of a node.
type TableReport struct {
	Nodes []NodeTable `json:"nodes"`
}

// NodeTable is the document of one node's table.
type NodeTable struct {
	fleet.Outcome
	Table    string `json:"table"`
	Document any    `json:"document"`
}
