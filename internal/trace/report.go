package trace

import (
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report is the result of `swdt trace status`.
type Report struct {
	Nodes []NodeReport `json:"nodes"`
}

// NodeReport is the report of one node.
type NodeReport struct {
	fleet.Outcome
	Services []ServiceStatus `json:"services"`
}

// NewReport returns the report about the services of all nodes.
func NewReport(results []fleet.Result[[]ServiceStatus]) Report {
	report := Report{Nodes: []NodeReport{}}
	for _, result := range results {
		report.Nodes = append(report.Nodes, NodeReport{result.Outcome(), append([]ServiceStatus{}, result.Value...)})
	}
	return report
}

// WriteText writes the report for people.
func (r Report) WriteText(w *ui.Page) error {
	for _, n := range r.Nodes {
		if len(r.Nodes) > 1 && n.Error == "" {
			if _, err := fmt.Fprintln(w, n.Name+":"); err != nil {
				return err
			}
		}
		var rows [][]string
		for _, s := range n.Services {
			rows = append(rows, s.row())
		}
		if err := ui.Lines(w, rows); err != nil {
			return err
		}
		for _, s := range n.Services {
			for _, difference := range s.Differences {
				if _, err := fmt.Fprintf(w, "  %s: %s\n", s.Name, difference); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// row returns the service in one line.
func (s ServiceStatus) row() []string {
	state := map[State]string{NoService: "no service", Changed: "on, and changed since"}[s.State]
	if state == "" {
		state = ui.Words(string(s.State))
	}
	row := []string{s.Name, state}
	if s.State == NoService {
		return row
	}
	level := s.Level
	if s.Before != "" && s.Before != s.Level {
		level += " (before: " + s.Before + ")"
	}
	row = append(row, level)
	if s.Since != nil {
		row = append(row, "since "+s.Since.UTC().Format(time.RFC3339)+" by "+s.By)
	}
	if s.LogFile != "" {
		row = append(row, s.LogFile)
	}
	return row
}
