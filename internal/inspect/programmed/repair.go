package programmed

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Action is the kind of a repair.
type Action string

// These are the actions in their order: kube-proxy makes a load balancer again only if the old one is gone, and an endpoint
// can be removed only if no load balancer names it.
const (
	RemoveBalancer Action = "removeLoadBalancer"
	RemoveEndpoint Action = "removeEndpoint"
	TouchService   Action = "touchService" // kube-proxy programs the Service again, on all nodes
)

// Repair is one step of a repair.
type Repair struct {
	Node    string         `json:"node"` // "" for a Service
	Action  Action         `json:"action"`
	Kind    kubeproxy.Kind `json:"kind"` // of the finding
	Service string         `json:"service"`
	At      string         `json:"at"`
	ID      string         `json:"id"` // of the HNS object
	Breaks  string         `json:"breaks"`
	// Result is wouldRepair, repaired, gone if the object was no longer wrong, skipped if the step was not taken since
	// another one failed or swdt was interrupted, or failed.
	Result string `json:"result"`
	Error  string `json:"error"`
}

// These are the values of Repair.Result.
const (
	WouldRepair = "wouldRepair"
	Repaired    = "repaired"
	Gone        = "gone"
	Skipped     = "skipped"
	Failed      = "failed"
)

// key identifies what a repair does.
func (r Repair) key() string { return string(r.Action) + " " + r.ID + " " + r.Service }

// RepairsOf returns the repairs of a node's findings, in their order, with one for each object and Service. Findings of other
// kinds have no repair that is safe without a person. A node whose kube-proxy synchronizes, or may, or did not serve its settings, has none.
func RepairsOf(n Node) (all []Repair) {
	if !n.Proxy.Settled || !n.Proxy.Configured || n.Error != "" {
		return nil
	}
	seen := map[string]bool{}
	add := func(f kubeproxy.Finding, action Action) {
		r := Repair{Node: n.Name, Action: action, Kind: f.Kind, Service: f.Service, At: f.At, ID: f.ID, Result: WouldRepair}
		switch action {
		case RemoveBalancer:
			r.Breaks = "connections to " + f.At + " through this node"
		case RemoveEndpoint:
			r.Breaks = "none that works: no load balancer names the endpoint"
		case TouchService:
			r.Node, r.ID, r.At = "", "", ""
			r.Breaks = "connections to the Service through all Windows nodes"
		}
		if !seen[r.key()] {
			seen[r.key()] = true
			all = append(all, r)
		}
	}
	for _, f := range n.Findings {
		if f.MustStay() {
			continue
		}
		switch f.Kind {
		case kubeproxy.NoPorts:
			add(f, RemoveBalancer)
		case kubeproxy.Stale, kubeproxy.Flags, kubeproxy.Target, kubeproxy.SourceVIP:
			add(f, RemoveBalancer)
			if f.Service != "" {
				add(f, TouchService)
			}
		case kubeproxy.Doubled:
			if f.Service != "" {
				add(f, RemoveBalancer)
				add(f, TouchService)
			}
		case kubeproxy.Missing, kubeproxy.Backends:
			add(f, TouchService)
		case kubeproxy.StaleRemote:
			add(f, RemoveEndpoint)
		}
	}
	sortRepairs(all)
	return all
}

func sortRepairs(all []Repair) {
	order := []Action{RemoveBalancer, RemoveEndpoint, TouchService}
	slices.SortFunc(all, func(a, b Repair) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Action), slices.Index(order, b.Action)), strings.Compare(a.Node, b.Node),
			strings.Compare(a.Service, b.Service), strings.Compare(a.At, b.At), strings.Compare(a.ID, b.ID))
	})
}

// Plan returns the repairs of all nodes. Several nodes may need the same Service to be touched, which is done once.
func Plan(r Report) []Repair {
	all, seen := []Repair{}, map[string]bool{}
	for _, n := range r.Nodes {
		for _, repair := range RepairsOf(n) {
			if repair.Action == TouchService {
				if seen[repair.Service] {
					continue
				}
				seen[repair.Service] = true
			}
			all = append(all, repair)
		}
	}
	sortRepairs(all)
	return all
}

// RemovalsOf returns the steps of a plan that remove objects from a node, as steps that were not taken.
func RemovalsOf(plan []Repair, node string) []Repair {
	mine := slices.DeleteFunc(slices.Clone(plan), func(p Repair) bool { return p.Action == TouchService || p.Node != node })
	for i := range mine {
		mine[i].Result = Skipped
	}
	return mine
}

// Remove takes the steps that RemovalsOf returns. It looks first, and removes only what is still wrong: time has passed since
// the plan was made. It sets the results of the steps; those after an error stay skipped.
func Remove(ctx context.Context, n *node.Node, o Options, steps []Repair, r ui.Reporter) error {
	now, err := Look(ctx, n, o, r)
	if err != nil {
		return err
	}
	if !now.Proxy.Settled {
		return errors.New("kube-proxy is synchronizing, or its metrics do not say; nothing was removed: repeat the command when it is done")
	}
	if !now.Proxy.Configured {
		return errors.New("kube-proxy does not serve its settings; nothing was removed: set --metrics-url")
	}
	wrong := map[string]bool{}
	for _, repair := range RepairsOf(now) {
		wrong[repair.key()] = true
	}
	var failed []error
	for i, p := range steps {
		if ctx.Err() != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
		if !wrong[p.key()] {
			steps[i].Result = Gone
			continue
		}
		r.Step("removing %s", p.ID)
		err := removeObject(ctx, n, p)
		switch {
		case errors.Is(err, fault.ErrNotExist):
			steps[i].Result = Gone
		case err != nil:
			steps[i].Result, steps[i].Error = Failed, err.Error()
			failed = append(failed, err)
		default:
			steps[i].Result = Repaired
		}
	}
	return errors.Join(failed...)
}

func removeObject(ctx context.Context, n *node.Node, p Repair) error {
	kind := agentv1.ComputeKind_COMPUTE_KIND_LOADBALANCERS
	if p.Action == RemoveEndpoint {
		kind = agentv1.ComputeKind_COMPUTE_KIND_ENDPOINTS
	}
	_, err := n.Compute.Remove(ctx, &agentv1.ComputeRequest{Kind: kind, Id: p.ID})
	return err
}

// Verify returns the steps with the results that a look after them shows: a Service was touched without effect if a node
// still needs the touch.
func Verify(steps []Repair, after Report) []Repair {
	needed := map[string]bool{}
	for _, p := range Plan(after) {
		needed[p.key()] = true
	}
	steps = slices.Clone(steps)
	for i, p := range steps {
		if p.Action == TouchService && p.Result == Repaired && needed[p.key()] {
			steps[i].Result = Failed
			steps[i].Error = "kube-proxy has not programmed the Service; repeat with an --interval longer than its minSyncPeriod"
		}
	}
	return steps
}
