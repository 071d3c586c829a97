package imagepull

import (
	"slices"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// The results of an image on a node.
const (
	Pulled    = "pulled"
	Unchanged = "unchanged" // the node has the image that the registry has
	NotBegun  = "notBegun"  // the node should pull it, and has not: a dry run, or a failure before
	Refused   = "refused"   // the node does not take it, or its Windows does not run it
	Failed    = "failed"
)

// Report is the result of pulls on nodes.
type Report struct {
	Nodes []NodeReport `json:"nodes"`
}

// NodeReport is the report of one node.
type NodeReport struct {
	fleet.Outcome               // changed, unchanged, or failed
	Images        []ImageResult `json:"images"`
}

// ImageResult is an image on a node.
type ImageResult struct {
	Image  string `json:"image"`
	Result string `json:"result"`
	// Digest is that of the image in the registry or, after the pull, of the image that the node has; "": not known.
	Digest string `json:"digest"`
	// NewBytes is the compressed size of the layers that the node lacks; 0: none, or not known.
	NewBytes int64  `json:"newBytes"`
	Message  string `json:"message"`
}

// NewReport joins the results of the nodes.
func NewReport(results []fleet.Result[[]ImageResult]) Report {
	report := Report{Nodes: []NodeReport{}}
	for _, one := range results {
		n := NodeReport{Outcome: fleet.NewOutcome(one.Name(), fleet.Unchanged, one.Err), Images: append([]ImageResult{}, one.Value...)}
		if one.Err == nil && slices.ContainsFunc(n.Images, func(i ImageResult) bool { return i.Result == Pulled }) {
			n.Result = fleet.Changed
		}
		report.Nodes = append(report.Nodes, n)
	}
	return report
}

// Columns are the columns of the table.
func Columns(wide bool) []string {
	all := []string{"NODE", "IMAGE", "RESULT", "NEW"}
	if wide {
		all = append(all, "DIGEST")
	}
	return append(all, "MESSAGE")
}

// WriteText writes a row for each image on each node.
func (r Report) WriteText(p *ui.Page) error {
	var rows [][]string
	for _, n := range r.Nodes {
		for _, i := range n.Images {
			row := []string{n.Name, i.Image, i.cell(), ui.Size(i.NewBytes)}
			if i.NewBytes == 0 {
				row[3] = ""
			}
			if p.Wide {
				row = append(row, i.Digest)
			}
			rows = append(rows, append(row, i.Message))
		}
	}
	return ui.TableOr(p, "no image to pull", Columns(p.Wide), rows)
}

func (i ImageResult) cell() string {
	switch i.Result {
	case NotBegun:
		return "not pulled"
	case Refused, Failed:
		return ui.Bad(i.Result)
	}
	return i.Result
}
