package transfer

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// CopyReport is the result of copies to or from several nodes.
type CopyReport struct {
	Nodes []NodeCopies `json:"nodes"`
}

// NodeCopies is the result for one node.
type NodeCopies struct {
	fleet.Outcome // the node's result: changed, unchanged or failed
	CopyResult
}

// NewCopyReport joins the results of the nodes.
func NewCopyReport(results []fleet.Result[CopyResult]) CopyReport {
	report := CopyReport{Nodes: []NodeCopies{}}
	for _, result := range results {
		outcome := fleet.Changed
		if result.Value.Files == result.Value.Unchanged {
			outcome = fleet.Unchanged
		}
		report.Nodes = append(report.Nodes,
			NodeCopies{fleet.NewOutcome(result.Name(), outcome, result.Err), result.Value})
	}
	return report
}

// WriteText writes a line for each node that did not fail; the command's error
// reports the others.
func (r CopyReport) WriteText(w *ui.Page) error {
	for _, n := range r.Nodes {
		if n.Error != "" {
			continue
		}
		if _, err := fmt.Fprintln(w, n.text(len(r.Nodes) > 1)); err != nil {
			return err
		}
	}
	return nil
}

func (n NodeCopies) text(several bool) string {
	var text string
	switch {
	case n.Files == n.Unchanged:
		text = fmt.Sprintf("nothing to do: %s there already", files(n.Files))
	case n.Unchanged > 0:
		text = fmt.Sprintf("%s, %s (%d there already, sent %s)", files(n.Files), ui.Size(n.SizeBytes), n.Unchanged,
			ui.Size(n.SentBytes))
	default:
		text = fmt.Sprintf("%s, %s (sent %s)", files(n.Files), ui.Size(n.SizeBytes), ui.Size(n.SentBytes))
	}
	if n.Skipped > 0 {
		text += fmt.Sprintf("; skipped %d that are not regular files", n.Skipped)
	}
	if several {
		return n.Name + ": " + text
	}
	return text
}

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
