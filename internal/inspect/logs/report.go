package logs

import (
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report is the result of `swdt logs list`.
type Report struct {
	Nodes []NodeReport `json:"nodes"`
}

// NodeReport lists the logs of one node.
type NodeReport struct {
	fleet.Outcome
	Logs []Entry `json:"logs"`
}

// Entry is one log.
type Entry struct {
	Source   string     `json:"source"`
	File     string     `json:"file"`
	Exists   bool       `json:"exists"`
	Size     int64      `json:"sizeBytes"`
	Modified *time.Time `json:"modified"` // null: the log does not exist yet
}

// NewReport returns the report of the logs of nodes.
func NewReport(results []fleet.Result[[]Found]) Report {
	report := Report{Nodes: []NodeReport{}}
	for _, result := range results {
		of := NodeReport{Outcome: result.Outcome(), Logs: []Entry{}}
		for _, found := range result.Value {
			entry := Entry{Source: found.Source, File: found.Path, Exists: found.Exists, Size: found.Size}
			if found.Exists {
				entry.Modified = &found.Modified
			}
			of.Logs = append(of.Logs, entry)
		}
		report.Nodes = append(report.Nodes, of)
	}
	return report
}

// Columns returns the columns of the table of one node, which has no more of them with -o wide.
func Columns(bool) []string { return []string{"SOURCE", "SIZE", "LAST WRITE", "FILE"} }

// WriteText writes a table of the logs of all nodes.
func (l Report) WriteText(w *ui.Page) error {
	header := Columns(w.Wide)
	if len(l.Nodes) > 1 {
		header = append([]string{"NODE"}, header...)
	}
	var rows [][]string
	for _, of := range l.Nodes {
		for _, e := range of.Logs {
			row := []string{e.Source, "-", "not yet", e.File}
			if e.Exists {
				row[1], row[2] = ui.Size(e.Size), e.Modified.UTC().Format(time.RFC3339)
			}
			if len(l.Nodes) > 1 {
				row = append([]string{of.Name}, row...)
			}
			rows = append(rows, row)
		}
	}
	return ui.TableOr(w, "no logs", header, rows)
}
