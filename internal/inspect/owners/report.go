package owners

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// Selection selects the processes of a table that are shown, and their order.
type Selection struct {
	Namespace string
	Pod       *regexp.Regexp // the pattern of the pod's name; nil: every pod
	All       bool           // show every process, and also containers that have ended
	Orphans   bool           // only unowned processes
	livetable.Choice

	// Remedies completes the swdt commands in a text about a node, so that the user can paste them:
	// with the node's name and the flags of this invocation.
	Remedies func(node, text string) string
	view     *livetable.View // the view that keys change; nil: there are no keys
}

// ofPods reports whether only some pods are shown.
func (s Selection) ofPods() bool { return s.Namespace != "" || s.Pod != nil }

// shown returns the part of a table that the selection wants.
func (s Selection) shown(t Table) Table {
	if !s.All {
		t.Others = []Process{}
	}
	if s.Orphans {
		t.Pods, t.Services = []Pod{}, []Service{}
	}
	if s.ofPods() {
		t.Services, t.Orphans, t.Unsettled = []Service{}, []Orphan{}, nil
		t.Pods = slices.DeleteFunc(slices.Clone(t.Pods), func(p Pod) bool {
			return s.Namespace != "" && p.Namespace != s.Namespace || s.Pod != nil && !s.Pod.MatchString(p.Name)
		})
	}
	return filter{s.Choice}.filtered(t)
}

// Report is the result of `swdt ps`.
type Report struct {
	Nodes []NodeReport `json:"nodes"`

	selection Selection
}

// NodeReport is the selected part of one node's table.
type NodeReport struct {
	fleet.Outcome
	Table

	whole Table // the whole table, of which Selection shows a part
}

// NewReport returns the report of the tables of nodes.
func NewReport(results []fleet.Result[Table], s Selection) Report {
	report := Report{Nodes: []NodeReport{}, selection: s}
	for _, r := range results {
		report.Nodes = append(report.Nodes, NodeReport{Outcome: r.Outcome(), Table: s.shown(r.Value), whole: r.Value})
	}
	return report
}

// OrphansError reports that a check found unowned processes.
type OrphansError struct{ Nodes []string } // names of nodes, each with the number of unowned processes

func (e *OrphansError) Error() string { return strings.Join(e.Nodes, "; ") }

// Check returns an *OrphansError if a node has unowned processes. It returns another error
// if it is unknown whether a node has unowned processes.
func (l Report) Check() error {
	var found, unknown []string
	for _, n := range l.Nodes {
		if len(n.whole.Orphans) > 0 {
			found = append(found, n.Name+": "+countUnowned(len(n.whole.Orphans)))
		}
		if len(n.whole.Gaps) > 0 {
			unknown = append(unknown, n.Name)
		}
	}
	switch {
	case len(found) > 0:
		return &OrphansError{found}
	case len(unknown) > 0:
		return fmt.Errorf("%s: orphaned shims cannot be detected while the container runtime does not answer; "+
			"`swdt status` shows its state",
			strings.Join(unknown, ", "))
	}
	return nil
}

func countUnowned(processes int) string {
	if processes == 1 {
		return "one process has no owner"
	}
	return fmt.Sprintf("%d processes have no owner", processes)
}

// Header returns the columns of the table of one node. If wide is true, they are those of -o wide.
func Header(wide bool) []string {
	header := []string{"OWNER", "PART", "PID", "CORES", "MEMORY", "HANDLES", "UPTIME", "PROGRAM", "IMAGE"}
	if wide {
		header = append(header, "PARENT", "THREADS", "SESSION", "STARTED", "FILE")
	}
	return header
}

// WriteText writes the table of all nodes, and how to end unowned processes.
func (l Report) WriteText(w *ui.Page) error {
	header := l.selection.view.Mark(Header(w.Wide), map[string]string{"cpu": "CORES"})
	several := len(l.Nodes) > 1
	if several {
		header = append([]string{"NODE"}, header...)
	}
	var rows [][]string
	for _, row := range l.rows() {
		cells := row.cells()
		if w.Wide {
			cells = append(cells, row.moreCells()...)
		}
		if several {
			cells = append([]string{row.node}, cells...)
		}
		rows = append(rows, cells)
	}
	if err := ui.TableOr(w, l.nothing(), header, rows); err != nil {
		return err
	}
	return l.explain(w, several)
}

func (l Report) nothing() string {
	switch {
	case l.selection.Orphans:
		return "no unowned process"
	case l.selection.ofPods(), l.selection.Filter != "":
		return "no such process"
	}
	return "no process of a pod, and no service; --all lists the others"
}

// explain writes why each unowned process has no owner, and the command that kills it.
func (l Report) explain(w io.Writer, several bool) error {
	for _, n := range l.Nodes {
		listed := map[uint32]bool{}
		for _, o := range n.Orphans {
			listed[o.PID] = true
			if listed[o.ParentPID] { // killing the parent's tree kills this process too
				continue
			}
			line := fmt.Sprintf("%d: %s", o.PID, o.Why)
			if o.Sandbox != "" {
				line += ", " + o.Sandbox
			}
			// The command names this node, since on other nodes another process may have this ID.
			line += l.selection.Remedies(n.Name, fmt.Sprintf("; `swdt exec -- taskkill /F /T /PID %d` kills it", o.PID))
			if several {
				line = n.Name + ": " + line
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}
