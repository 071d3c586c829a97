package programmed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
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
	// Result is wouldRepair, repaired, gone if the object was no longer wrong, or failed.
	Result string `json:"result"`
	Error  string `json:"error"`
}

// These are the values of Repair.Result.
const (
	WouldRepair = "wouldRepair"
	Repaired    = "repaired"
	Gone        = "gone"
	Failed      = "failed"
)

// key identifies what a repair does.
func (r Repair) key() string { return string(r.Action) + " " + r.ID + " " + r.Service }

// RepairsOf returns the repairs of a node's findings, in their order, with one for each object and Service. Findings of other
// kinds have no repair that is safe without a person. A node whose kube-proxy synchronizes, or may, has none.
func RepairsOf(n Node) (all []Repair) {
	if !n.Proxy.Settled || n.Error != "" {
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

// Remove removes the wrong objects of a plan from a node. It looks first, and removes only what is still wrong: time has
// passed since the plan was made.
func Remove(ctx context.Context, n *node.Node, o Options, plan []Repair, r ui.Reporter) ([]Repair, error) {
	plan = slices.DeleteFunc(slices.Clone(plan), func(p Repair) bool { return p.Action == TouchService })
	if len(plan) == 0 {
		return nil, nil
	}
	now, err := Look(ctx, n, o, r)
	if err != nil {
		return nil, err
	}
	if !now.Proxy.Settled {
		return nil, errors.New("kube-proxy is synchronizing, or its metrics do not say; nothing was removed: repeat the command when it is done")
	}
	wrong := map[string]bool{}
	for _, repair := range RepairsOf(now) {
		wrong[repair.key()] = true
	}
	var done []error
	for i, p := range plan {
		if !wrong[p.key()] {
			plan[i].Result = Gone
			continue
		}
		r.Step("removing %s", p.ID)
		kind := agentv1.ComputeKind_COMPUTE_KIND_LOADBALANCERS
		if p.Action == RemoveEndpoint {
			kind = agentv1.ComputeKind_COMPUTE_KIND_ENDPOINTS
		}
		_, err := n.Compute.Remove(ctx, &agentv1.ComputeRequest{Kind: kind, Id: p.ID})
		switch {
		case errors.Is(err, fault.ErrNotExist):
			plan[i].Result = Gone
		case err != nil:
			plan[i].Result, plan[i].Error = Failed, err.Error()
			done = append(done, err)
		default:
			plan[i].Result = Repaired
		}
	}
	return plan, errors.Join(done...)
}

// annotation is the one of Services whose change makes kube-proxy program a Service again (pkg/proxy/winkernel/proxier.go,
// newServiceInfo): only "disabled" differs from all other values.
const annotation = "winProxyOptimization"

// Touch makes kube-proxy program the Services of a plan again: it changes their annotation, waits until kube-proxy has seen
// it, and changes it back. A Service that is gone is skipped.
func Touch(ctx context.Context, client kubernetes.Interface, o Options, plan []Repair, r ui.Reporter) ([]Repair, error) {
	plan = slices.DeleteFunc(slices.Clone(plan), func(p Repair) bool { return p.Action != TouchService })
	before := make([]*string, len(plan))
	var failed []error
	note := func(i int, err error) {
		switch {
		case apierrors.IsNotFound(err):
			plan[i].Result = Gone
		case err != nil:
			plan[i].Result, plan[i].Error = Failed, err.Error()
			failed = append(failed, fmt.Errorf("touch Service %s: %w", plan[i].Service, err))
		default:
			plan[i].Result = Repaired
		}
	}
	for i, p := range plan {
		r.Step("touching Service %s", p.Service)
		value, err := change(ctx, client, p.Service)
		before[i] = value
		note(i, err)
	}
	if len(plan) == 0 {
		return plan, nil
	}
	// The annotations are changed back also after Ctrl-C.
	waited := wait.For(ctx, o.Settle)
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Wait)
	defer cancel()
	for i, p := range plan {
		if p.Result == Repaired {
			note(i, annotate(back, client, p.Service, before[i]))
		}
	}
	if waited != nil {
		failed = append(failed, context.Cause(ctx))
	}
	return plan, errors.Join(failed...)
}

// change changes the annotation so that kube-proxy sees another value, and returns the former one.
func change(ctx context.Context, client kubernetes.Interface, service string) (former *string, err error) {
	namespace, name, _ := strings.Cut(service, "/")
	object, err := client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	other := "disabled"
	if value, ok := object.Annotations[annotation]; ok {
		former = &value
		if strings.EqualFold(value, other) {
			other = "enabled"
		}
	}
	return former, annotate(ctx, client, service, &other)
}

// annotate sets the annotation; nil removes it.
func annotate(ctx context.Context, client kubernetes.Interface, service string, value *string) error {
	namespace, name, _ := strings.Cut(service, "/")
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{annotation: value}}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Services(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "swdt"})
	return err
}
