package kubeproxy

import (
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Report is the comparison of one node.
type Report struct {
	// Wanted is the number of load balancers that the Services need on the node, and Held the number of those in HNS.
	Wanted int `json:"wanted"`
	Held   int `json:"held"`
	// Endpoints is the number of HNS endpoints, and Remote that of those on other nodes.
	Endpoints int       `json:"endpoints"`
	Remote    int       `json:"remote"`
	Findings  []Finding `json:"findings"` // the worst first, at most 1000
	Omitted   int       `json:"omitted"`  // findings beyond these
	wantedOf  map[string]int
}

// WantedBy returns the number of load balancers that some Services need, which are chosen by NAMESPACE/NAME.
func (r Report) WantedBy(chosen func(service string) bool) (count int) {
	for service, wanted := range r.wantedOf {
		if chosen(service) {
			count += wanted
		}
	}
	return count
}

// maxFindings bounds the findings of a node, whose HNS may return any objects.
const maxFindings = 1000

// Compare compares the objects of a node's HNS with those that its kube-proxy should have made of the cluster's Services. Its
// time is linear in the number of the objects. A change that kube-proxy has not programmed yet is a finding, too: the caller
// looks again.
func (c *Cluster) Compare(s Settings, state hns.State) Report {
	n, ok := newNode(s, state)
	r := Report{Held: len(state.LoadBalancers), Endpoints: len(state.Endpoints), Findings: []Finding{}}
	for _, e := range state.Endpoints {
		if e.Remote {
			r.Remote++
		}
	}
	if !ok {
		f := newFinding(NoNetwork, finding.Error, "HNS has no network %s, so kube-proxy waits for it", shown(s.Network))
		f.Affected = "all clients on this node"
		f.Remedy = "`swdt hns networks` lists the networks; compare --network-name of kube-proxy with them, and read the log of the " +
			"pod network's agent"
		r.Findings = append(r.Findings, f)
		return r
	}
	l := comparison{Cluster: c, node: n, seen: map[string]bool{}}
	r.wantedOf = l.balancers()
	r.Wanted = r.WantedBy(func(string) bool { return true })
	l.orphans()
	l.remotes()
	l.lostPods()
	sortFindings(l.found)
	r.Omitted = max(len(l.found)-maxFindings, 0)
	r.Findings = append(r.Findings, l.found[:len(l.found)-r.Omitted]...)
	all := knownDefects()
	for i := range r.Findings {
		r.Findings[i].Defects = defectsOf(all, r.Findings[i], s)
	}
	return r
}

// comparison is the state of one Compare.
type comparison struct {
	*Cluster
	*node
	found []Finding
	seen  map[string]bool // IDs of the load balancers that a Service explains
}

func (l *comparison) add(f Finding) { l.found = append(l.found, f) }
