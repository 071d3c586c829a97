package scale

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// The results of a run.
const (
	Programmed = "programmed" // all nodes programmed all Services in time, and removed them
	Failed     = "failed"     // a Service was not programmed, or too slowly, or kube-proxy was restarted
	Incomplete = "incomplete" // the run itself failed, or was interrupted
)

// The problems of a Service on a node.
const (
	Missing        = "missing"        // HNS has no load balancer with its address
	WrongEndpoints = "wrongEndpoints" // its load balancer has other endpoints
	Left           = "left"           // its load balancer is still there after the Service was removed
	Slow           = "slow"           // it took longer than --slow
	Unknown        = "unknown"        // HNS did not answer
)

// The sources of failures.
const (
	FromLog     = "log"     // kube-proxy logged an error
	FromMetrics = "metrics" // kube-proxy's metrics count it, since its start
	FromWatch   = "watch"   // the node did not answer swdt
)

// maxFaults bounds the Services with problems that the result lists for each phase of a node.
const maxFaults = 100

// Report is the result of a run.
type Report struct {
	Result     string    `json:"result"` // programmed, failed or incomplete
	Error      string    `json:"error"`  // the failure of the run itself; "" if there is none
	Cluster    string    `json:"cluster"`
	Kubernetes string    `json:"kubernetes"` // the API server's version
	Namespace  string    `json:"namespace"`
	Load       Load      `json:"load"`
	Begin      time.Time `json:"begin"`
	Seconds    float64   `json:"seconds"`
	Folder     string    `json:"folder"` // the folder with the results; "" if nothing was made
	// Others is the number of Services in the cluster before the run.
	Others int `json:"others"`
	// Leftovers are the namespaces of killed runs that were removed.
	Leftovers []string      `json:"leftovers"`
	Phases    []PhaseWrites `json:"phases"`
	Nodes     []NodeReport  `json:"nodes"`
}

// PhaseWrites are the requests of a phase.
type PhaseWrites struct {
	Phase  string `json:"phase"`
	Writes Writes `json:"writes"`
}

// NodeReport is the result of a run on a node.
type NodeReport struct {
	Name string `json:"name"`
	// Result is programmed or failed, and Error the reason for the latter.
	Result   string      `json:"result"`
	Error    string      `json:"error"`
	Phases   []NodePhase `json:"phases"`
	Failures []Failure   `json:"failures"`
	Samples  []Sample    `json:"samples"`
	Cost     Cost        `json:"cost"`
}

// NodePhase is the result of a phase on a node. All times are by the clock of your machine.
type NodePhase struct {
	Phase      string `json:"phase"`    // create, churn or remove
	Services   int    `json:"services"` // that were written
	Programmed int    `json:"programmed"`
	// Time is the time of a Service from the API server's answer until HNS had its load balancer with its
	// endpoints (in the phase remove: until HNS no longer had it), as an upper bound.
	Time Spread `json:"time"`
	// Resolution is by how much the times can be too long: the time between two looks at HNS.
	Resolution Spread `json:"resolution"`
	// AllSeconds is the time from the last write until HNS had all; 0 if it does not have all.
	AllSeconds float64 `json:"allSeconds"`
	// ProxySettled reports whether kube-proxy's metrics showed that it had programmed all, and
	// ProxySeconds is the time from the last write until then.
	ProxySettled bool    `json:"proxySettled"`
	ProxySeconds float64 `json:"proxySeconds"`
	// Metrics reports whether kube-proxy's metrics could be read. Without them, Syncs is empty.
	Metrics bool  `json:"metrics"`
	Syncs   Syncs `json:"syncs"`
	CPU     CPU   `json:"cpu"`
	// ProxyMemoryBytes and ProxyHandles are the most of the phase; 0 if kube-proxy was not found.
	ProxyMemoryBytes uint64 `json:"proxyMemoryBytes"`
	ProxyHandles     uint32 `json:"proxyHandles"`
	// ProxyRestarts is the number of kube-proxy's processes that ended.
	ProxyRestarts int `json:"proxyRestarts"`
	// FaultCount is the number of Services with a problem; Faults has the first 100 of them.
	FaultCount int     `json:"faultCount"`
	Faults     []Fault `json:"faults"`
}

// CPU is CPU time, in seconds.
type CPU struct {
	ProxySeconds float64 `json:"proxySeconds"`
	HNSSeconds   float64 `json:"hnsSeconds"` // of the process of HNS; 0 if it is unknown
	AgentSeconds float64 `json:"agentSeconds"`
}

// Fault is a Service that has a problem on a node.
type Fault struct {
	Service string  `json:"service"`
	Address string  `json:"address"` // its cluster IP
	Problem string  `json:"problem"` // missing, wrongEndpoints, left, slow or unknown
	Seconds float64 `json:"seconds"` // of a slow Service; 0 of others
}

// Failure is a kind of error, with its number.
type Failure struct {
	Source  string `json:"source"` // log, metrics or watch
	Message string `json:"message"`
	Count   int    `json:"count"`
}

func compareFailures(a, b Failure) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Message, b.Message))
}

// Cost is the cost of watching a node.
type Cost struct {
	Calls int   `json:"calls"` // of the agent
	Bytes int64 `json:"bytes"` // of the agent's replies, before compression
	// Looks is the number of looks at HNS, and LookSeconds the time of all of them.
	Looks           int     `json:"looks"`
	LookSeconds     float64 `json:"lookSeconds"`
	AgentCPUSeconds float64 `json:"agentCPUSeconds"`
}

// Spread is how much durations differ, in seconds: half of them, 90 and 99 percent, and all are at most
// this long.
type Spread struct {
	Half float64 `json:"half"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// spread returns the percentiles of durations by nearest rank; zero if there are none.
func spread(all []time.Duration) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := func(share float64) float64 {
		n := int(math.Ceil(share * float64(len(sorted))))
		return sorted[max(n, 1)-1].Seconds()
	}
	return Spread{Half: rank(0.5), P90: rank(0.9), P99: rank(0.99), Max: sorted[len(sorted)-1].Seconds()}
}

// judge fills in what the progress of the Services shows.
func (p *NodePhase) judge(entries []entry, spans []span, final time.Time, slow time.Duration) {
	var took, resolution []time.Duration
	var last time.Time
	var faults []Fault
	for i, e := range entries {
		s := spans[i]
		if s.by.IsZero() {
			faults = append(faults, Fault{Service: e.name, Address: e.vip.String(), Problem: p.problem()})
			continue
		}
		time := max(s.by.Sub(e.written), 0)
		took = append(took, time)
		since := e.written
		if s.after.After(since) {
			since = s.after
		}
		resolution = append(resolution, max(s.by.Sub(since), 0))
		if s.by.After(last) {
			last = s.by
		}
		// A time counts as slow only if the Service was certainly not programmed before.
		if certain := since.Sub(e.written); slow > 0 && certain > slow {
			faults = append(faults, Fault{Service: e.name, Address: e.vip.String(), Problem: Slow, Seconds: time.Seconds()})
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Service, b.Service) })
	p.FaultCount, p.Faults = len(faults), append(p.Faults, faults[:min(len(faults), maxFaults)]...)
	p.Programmed = len(took)
	p.Time, p.Resolution = spread(took), spread(resolution)
	if p.Programmed == p.Services && p.Services > 0 {
		p.AllSeconds = max(last.Sub(final).Seconds(), 0)
	}
}

func (p *NodePhase) problem() string {
	if p.Phase == Remove {
		return Left
	}
	return Missing
}

// specify finds out more about the Services that were not programmed, with the load balancers that HNS
// has now.
func (p *NodePhase) specify(has func(address string) bool, answered bool) {
	for i, f := range p.Faults {
		switch {
		case f.Problem != Missing && f.Problem != Left:
		case !answered:
			p.Faults[i].Problem = Unknown
		case f.Problem == Missing && has(f.Address):
			p.Faults[i].Problem = WrongEndpoints
		}
	}
}

// Failure returns the error with which a run with this report ended: a *FailedError, an
// *IncompleteError or nil.
func (r Report) Failure() error {
	switch r.Result {
	case Programmed:
		return nil
	case Failed:
		return &FailedError{}
	}
	return &IncompleteError{Why: r.Error}
}

// judged returns the report with its verdict. err is the failure of the run itself.
func (r Report) judged(err error) Report {
	r.Result = Programmed
	for i := range r.Nodes {
		n := &r.Nodes[i]
		n.Result = Programmed
		for _, p := range n.Phases {
			switch {
			case p.FaultCount > 0:
				n.Result, n.Error = Failed, fmt.Sprintf("%s: %d Services have a problem", p.Phase, p.FaultCount)
			case p.ProxyRestarts > 0:
				n.Result, n.Error = Failed, p.Phase+": the proxy's process ended"
			}
		}
		if n.Result == Failed {
			r.Result = Failed
		}
	}
	if err != nil {
		r.Result, r.Error = Incomplete, err.Error()
	}
	return r
}

// FailedError reports that a node did not program all Services in time. The report has the details.
type FailedError struct{}

func (e *FailedError) Error() string { return "a node did not program all Services in time" }

// IncompleteError reports that a run itself failed, or was interrupted.
type IncompleteError struct{ Why string }

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("the run itself failed: %s", cmp.Or(e.Why, "it was ended"))
}
