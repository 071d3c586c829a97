package smoke

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// Results of legs, nodes and runs.
const (
	Passed = "passed"
	Failed = fleet.Failed
	NotRun = "notRun"
)

// Report is the result of a run.
type Report struct {
	Cluster string `json:"cluster"` // the API server's URL
	// Result is passed if all legs of all nodes have passed, otherwise failed.
	Result string `json:"result"`
	// Namespace is the namespace of the test; "" if it was not made.
	Namespace string `json:"namespace"`
	// Kept reports whether the run left the namespace in the cluster because of --keep.
	Kept   bool         `json:"kept"`
	Server ServerReport `json:"server"`
	Nodes  []NodeReport `json:"nodes"`
	// Leftovers are the namespaces of killed runs that this run has removed.
	Leftovers []string `json:"leftovers"`
	Seconds   float64  `json:"seconds"`
}

// ServerReport is the state of the server, which is the pod on a Linux node that answers the
// requests of the Windows pods.
type ServerReport struct {
	Pod     string  `json:"pod"`
	Node    string  `json:"node"`    // "" if the pod does not run
	Image   string  `json:"image"`   // the wanted image
	Address string  `json:"address"` // the pod's IP; "" if the pod does not run
	Result  string  `json:"result"`  // passed, failed or notRun
	Message string  `json:"message"` // the reason why the pod does not run; "" if it runs
	Seconds float64 `json:"seconds"` // the time until the pod ran, or until the wait for it failed
}

// NodeReport is the result of a Windows node.
type NodeReport struct {
	fleet.Outcome        // the node's result: passed or failed
	Build         string `json:"build"` // the build of the node's Windows, such as 10.0.20348.2849
	Pod           string `json:"pod"`
	Image         string `json:"image"`
	Legs          []Leg  `json:"legs"`
}

// Leg is the result of one leg.
type Leg struct {
	Name   string `json:"name"`
	Result string `json:"result"` // passed, failed or notRun
	// Message is the cause of a failure and the remedy, or the reason why the leg was not run; ""
	// if the leg passed.
	Message string  `json:"message"`
	Seconds float64 `json:"seconds"`
}

// FailedError reports that legs have not passed.
type FailedError struct {
	Failed, NotRun []string // NODE: LEG
	Total          int
}

func (e *FailedError) Error() string {
	text := fmt.Sprintf("%d of %d legs were not run", len(e.NotRun), e.Total)
	legs := e.NotRun
	if len(e.Failed) > 0 {
		text = fmt.Sprintf("%d of %d legs failed, %d were not run", len(e.Failed), e.Total, len(e.NotRun))
		legs = e.Failed
	}
	return text + ": " + shortened(strings.Join(legs, ", "), maxText) +
		"; `swdt cluster check --keep` leaves the pods for a look"
}

func newReport(c *cluster.Cluster, o Options) Report {
	return Report{Cluster: c.Server(), Result: Failed, Server: ServerReport{Image: o.LinuxImage, Result: NotRun},
		Nodes: []NodeReport{}, Leftovers: []string{}}
}

// ended fills in the node's result: the error of its first leg that did not pass.
func (n NodeReport) ended() NodeReport {
	i := slices.IndexFunc(n.Legs, func(l Leg) bool { return l.Result != Passed })
	if i >= 0 {
		n.Result, n.Error = Failed, n.Legs[i].Name+": "+n.Legs[i].Message
	}
	return n
}

func (r Report) ended(took time.Duration) Report {
	r.Seconds, r.Result = took.Seconds(), Passed
	if r.failure() != nil {
		r.Result = Failed
	}
	return r
}

// failure returns a *FailedError if a leg did not pass.
func (r Report) failure() error {
	e := &FailedError{}
	for _, n := range r.Nodes {
		for _, l := range n.Legs {
			e.Total++
			switch l.Result {
			case Failed:
				e.Failed = append(e.Failed, n.Name+": "+l.Name)
			case NotRun:
				e.NotRun = append(e.NotRun, n.Name+": "+l.Name)
			}
		}
	}
	if len(e.Failed)+len(e.NotRun) == 0 {
		return nil
	}
	return e
}

// Columns returns the columns of the table of a Report. If wide is true, they are those of -o wide.
func Columns(wide bool) []string {
	header := []string{"NODE", "LEG", "RESULT", "TIME", "MESSAGE"}
	if wide {
		header = slices.Insert(header, 1, "BUILD", "POD")
	}
	return header
}

// WriteText writes a line for each leg of each node, and then a line that counts the legs.
func (r Report) WriteText(p *ui.Page) error {
	var rows [][]string
	for _, n := range r.Nodes {
		for _, l := range n.Legs {
			row := []string{n.Name, l.Name, coloured(l.Result), took(l), l.Message}
			if p.Wide {
				row = slices.Insert(row, 1, n.Build, n.Pod)
			}
			rows = append(rows, row)
		}
	}
	if err := ui.TableOr(p, "no Windows node was tested", Columns(p.Wide), rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p, r.Sentence())
	if err == nil && r.Kept {
		_, err = fmt.Fprintf(p, "namespace %s was kept: %s removes it\n", r.Namespace,
			remedy.KubectlCommand("delete", "namespace", r.Namespace))
	}
	return err
}

// Sentence returns a sentence with the number of nodes, the number of legs by result, and the
// duration of the run.
func (r Report) Sentence() string {
	count := map[string]int{}
	for _, n := range r.Nodes {
		for _, l := range n.Legs {
			count[l.Result]++
		}
	}
	text := fmt.Sprintf("%d Windows nodes", len(r.Nodes))
	if len(r.Nodes) == 1 {
		text = "1 Windows node"
	}
	if count[Passed] == 1 {
		text += ": 1 leg passed"
	} else {
		text += fmt.Sprintf(": %d legs passed", count[Passed])
	}
	if count[Failed] > 0 {
		text += fmt.Sprintf(", %d failed", count[Failed])
	}
	if count[NotRun] > 0 {
		text += fmt.Sprintf(", %d not run", count[NotRun])
	}
	return text + " in " + ui.Seconds(time.Duration(r.Seconds*float64(time.Second)))
}

func coloured(result string) string {
	switch result {
	case Failed:
		return ui.Bad(result)
	case NotRun:
		return ui.Warn(ui.Words(result))
	}
	return ui.Good(result)
}

// took returns the time of a leg in words; "" if the leg was not run.
func took(l Leg) string {
	if l.Result == NotRun {
		return ""
	}
	return ui.Seconds(time.Duration(l.Seconds * float64(time.Second)))
}
