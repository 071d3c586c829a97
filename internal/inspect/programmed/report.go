package programmed

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Report is the result of a comparison of nodes with their cluster.
type Report struct {
	Nodes []Node `json:"nodes"`
}

// RepairReport is the result of a repair, or its plan.
type RepairReport struct {
	Repairs []Repair `json:"repairs"`
	// Nodes are the nodes after the repair; in a dry run, as they are.
	Nodes []Node `json:"nodes"`
}

// Names returns the repaired objects and Services.
func (r RepairReport) Names() (all []string) {
	for _, p := range r.Repairs {
		if p.Action == TouchService {
			all = append(all, "service/"+p.Service)
		} else {
			all = append(all, strings.ToLower(strings.TrimPrefix(string(p.Action), "remove"))+"/"+p.ID)
		}
	}
	return all
}

// WriteText writes the repairs, and then the nodes.
func (r RepairReport) WriteText(p *ui.Page) error {
	var rows [][]string
	for _, repair := range r.Repairs {
		object, result := cmp.Or(repair.ID, repair.Service), repair.Result
		if repair.Error != "" {
			result += ": " + repair.Error
		}
		rows = append(rows, []string{result, cmp.Or(repair.Node, "all"), string(repair.Action), object, string(repair.Kind), repair.Breaks})
	}
	header := []string{"RESULT", "NODE", "ACTION", "OBJECT", "BECAUSE", "BREAKS"}
	if err := ui.TableOr(p, "nothing to repair", header, rows); err != nil {
		return err
	}
	return Report{r.Nodes}.WriteText(p)
}

// Node is the result of one node.
type Node struct {
	fleet.Outcome
	Proxy    Proxy `json:"proxy"`
	Services int   `json:"services"` // of the cluster, or the chosen ones
	Backends int   `json:"backends"` // of these Services
	kubeproxy.Report
	// Pending are Services whose differences were not there at two looks one after the other; PendingCount is the number of
	// these differences.
	Pending      []string `json:"pending"`
	PendingCount int      `json:"pendingCount"`
	Looks        int      `json:"looks"`
	Seconds      float64  `json:"seconds"` // of all looks together
}

// NewReport returns the report about nodes.
func NewReport(results []fleet.Result[Node]) Report {
	r := Report{Nodes: []Node{}}
	for _, result := range results {
		n := result.Value
		n.Outcome = result.Outcome()
		if n.Findings == nil { // the node failed
			n.Findings, n.Pending, n.Proxy.Failures = []kubeproxy.Finding{}, []string{}, map[string]float64{}
		}
		r.Nodes = append(r.Nodes, n)
	}
	return r
}

// Names returns the Services with findings of all nodes, as service/NAMESPACE/NAME, and the objects of no Service.
func (r Report) Names() (all []string) {
	seen := map[string]bool{}
	for _, n := range r.Nodes {
		for _, f := range n.Findings {
			name := "service/" + f.Service
			if f.Service == "" {
				name = f.Object + "/" + f.ID
			}
			if !seen[name] && name != "/" {
				seen[name] = true
				all = append(all, name)
			}
		}
	}
	return all
}

// Wrong reports whether a node has a finding that is more than a note.
func (r Report) Wrong() bool {
	for _, n := range r.Nodes {
		if finding.Has(n.Findings, finding.Warning) {
			return true
		}
	}
	return false
}

// WriteText writes the findings of each node that answered.
func (r Report) WriteText(p *ui.Page) error {
	for _, n := range r.Nodes {
		if n.Error != "" {
			continue
		}
		var entries []finding.Entry
		for _, f := range n.Findings {
			entries = append(entries, entry(f, p.Wide))
		}
		if err := finding.Write(p, n.Name, n.proxyText(), n.summary(), entries); err != nil {
			return err
		}
	}
	return nil
}

func (n Node) proxyText() string {
	if n.Proxy.Version == "" {
		return "kube-proxy"
	}
	return "kube-proxy " + n.Proxy.Version
}

func (n Node) summary() string {
	counts := finding.Counts(n.Findings)
	if counts == "" {
		counts = "HNS has what the Services need"
	}
	parts := []string{fmt.Sprintf("%s of %s with %s", finding.Several(n.Wanted, "load balancer"), finding.Several(n.Services, "Service"),
		finding.Several(n.Backends, "backend"))}
	if n.PendingCount > 0 {
		parts = append(parts, fmt.Sprintf("%s not judged, since the Services change", finding.Several(n.PendingCount, "difference")))
	}
	if n.Omitted > 0 {
		parts = append(parts, fmt.Sprintf("%d more not listed", n.Omitted))
	}
	return counts + " (" + strings.Join(parts, "; ") + ")"
}

// entry returns a finding in the form of all findings. A wide one has all known defects.
func entry(f kubeproxy.Finding, wide bool) finding.Entry {
	e := finding.Entry{By: string(f.Kind), Finding: f.Finding}
	if f.Service != "" {
		e.What = strings.TrimSpace(f.Service+" "+f.Port) + " at " + f.At + ": " + f.What
	} else if f.At != "" && !strings.Contains(f.What, f.At) {
		e.What = f.At + ": " + f.What
	}
	if f.Evidence != "" {
		e.Seen = append(e.Seen, f.Evidence)
	}
	if f.ID != "" {
		e.Seen = append(e.Seen, f.Object+" "+f.ID)
	}
	if f.Affected != "" {
		e.Notes = append(e.Notes, "affected: "+f.Affected)
	}
	for i, d := range f.Defects {
		if i == maxDefects && !wide {
			break
		}
		e.Notes = append(e.Notes, "known: "+d.Title+" ("+d.Link+", "+repairs(d)+")")
	}
	return e
}

// maxDefects bounds the known defects of a finding that is not wide.
const maxDefects = 2

func repairs(d kubeproxy.Defect) string {
	text := "no repair is known"
	if len(d.Fixed) > 0 {
		text = "repaired in " + strings.Join(d.Fixed, ", ")
	}
	if d.Affects == kubeproxy.CannotTell {
		text += "; kube-proxy's version is unknown"
	}
	return text
}
