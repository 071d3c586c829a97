package criclient

import (
	"encoding/json"
	"fmt"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report has one answer of each node's runtime, in the JSON format of crictl.
type Report struct {
	Nodes []NodeReport `json:"nodes"`

	results []fleet.Result[Answer]
}

// NodeReport has the answer of one node.
type NodeReport struct {
	fleet.Outcome
	Answer json.RawMessage `json:"answer"` // null: no answer
}

// NewReport returns the report of the nodes' answers.
func NewReport(results []fleet.Result[Answer]) Report {
	report := Report{Nodes: []NodeReport{}, results: results}
	for _, result := range results {
		report.Nodes = append(report.Nodes, NodeReport{result.Outcome(), result.Value.JSON})
	}
	return report
}

// WriteText writes the answers, with the nodes' names if there are several nodes. It skips nodes
// that failed, since the command prints their errors on stderr.
func (r Report) WriteText(w *ui.Page) error {
	for _, result := range r.results {
		if result.Err != nil {
			continue
		}
		if len(r.results) > 1 {
			if _, err := fmt.Fprintf(w, "%s:\n", result.Name()); err != nil {
				return err
			}
		}
		if err := result.Value.Text(w); err != nil {
			return err
		}
	}
	return nil
}
