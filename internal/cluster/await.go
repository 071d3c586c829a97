package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wait"
)

// pollInterval is the default time between two requests of a wait. Waits poll instead of watching:
// a watch must be restarted whenever the server or a proxy ends it, and one request a
// second is no load for an API server.
const pollInterval = time.Second

// Wanted is the state that AwaitNode waits for. Every field other than Registered implies that
// Registered is wanted too.
type Wanted struct {
	Registered  bool
	Ready       bool
	LeaseAfter  time.Time // a lease renewed after this time, by the node's clock
	Allocatable bool      // the node reports more than 0 CPU and memory for pods
	Addresses   bool      // the node reports an InternalIP and a Hostname
	InternalIP  string    // its InternalIP is this one, or these with a comma; "": any
	Labels      map[string]string
	Taints      []corev1.Taint
}

// missing returns the wanted parts that the node does not have yet, for people.
func (w Wanted) missing(n Node) []string {
	if !n.Exists {
		return []string{"registered"}
	}
	var missing []string
	if w.Ready && !n.Ready {
		missing = append(missing, "Ready")
	}
	if !w.LeaseAfter.IsZero() && !n.LeaseRenewed.After(w.LeaseAfter) {
		missing = append(missing, "a lease renewed after "+w.LeaseAfter.UTC().Format(time.RFC3339))
	}
	if w.Allocatable && (n.Allocatable.MilliCPU <= 0 || n.Allocatable.MemoryBytes <= 0) {
		missing = append(missing, "allocatable CPU and memory")
	}
	if w.Addresses {
		for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeHostName} {
			if n.address(kind) == "" {
				missing = append(missing, string(kind))
			}
		}
	}
	if w.InternalIP != "" && n.InternalIP() != "" && !n.HasInternalIPs(w.InternalIP) {
		missing = append(missing, "InternalIP "+w.InternalIP)
	}
	for _, key := range slices.Sorted(maps.Keys(w.Labels)) {
		if has, ok := n.Labels[key]; !ok || has != w.Labels[key] {
			missing = append(missing, "label "+key+"="+w.Labels[key])
		}
	}
	for _, t := range w.Taints {
		if !slices.ContainsFunc(n.Taints,
			func(has corev1.Taint) bool { return has.MatchTaint(&t) && has.Value == t.Value }) {
			missing = append(missing, "taint "+t.ToString())
		}
	}
	return missing
}

// NodeWaitError reports that the node did not reach the wanted state in time.
type NodeWaitError struct {
	Name    string
	Missing []string // the wanted parts that the node lacks
	Last    Node     // the last state of the node that was seen
	Asked   error    // the error of the last request, if it failed
	After   time.Duration
	Err     error
}

func (e *NodeWaitError) Error() string {
	seen := "last seen " + e.Last.State()
	if e.Asked != nil {
		seen += "; the last request failed: " + e.Asked.Error()
	}
	return fmt.Sprintf("wait for node %s to be %s: given up after %s (%v); %s; %s", e.Name,
		strings.Join(e.Missing, ", "), e.After.Round(time.Second), e.Err, seen, e.remedy())
}
func (e *NodeWaitError) Unwrap() error { return e.Err }

func (e *NodeWaitError) remedy() string {
	if !e.Last.Exists {
		return "the kubelet's log on the node says why it does not register"
	}
	if ready, ok := e.Last.Condition(string(corev1.NodeReady)); ok && ready.Status == string(corev1.ConditionUnknown) {
		return "its kubelet does not report: is the service running, and does it reach the API server?"
	}
	if e.Last.Ready && e.Last.InternalIP() == "" {
		return "its kubelet found no address: set spec.kubernetes.join.nodeIP to one of the machine"
	}
	return "see " + remedy.KubectlCommand("describe", "node", e.Last.Name)
}

// AwaitNode waits until the node has the wanted state, and returns the node. Whenever the reason
// to wait changes, it calls report. It continues while the API server is temporarily unreachable.
// If ctx ends first, the error is a *NodeWaitError. Rejected credentials or a missing permission
// end the wait at once, with their own error.
func (c *Cluster) AwaitNode(ctx context.Context, name string, want Wanted, report func(state string)) (Node, error) {
	last, reported := Node{Name: name}, ""
	var asked error // the error of the last request that ctx did not interrupt
	err := wait.Condition{
		Name:     "node " + name,
		Interval: c.poll,
		Look: func(ctx context.Context) error {
			n, err := c.Node(ctx, name)
			switch {
			case err == nil:
				last = n
			case denied(err):
				return wait.Stop(err)
			}
			if ctx.Err() == nil {
				asked = err
			}
			if missing := want.missing(last); err != nil || len(missing) > 0 {
				return errors.New(waitState(last, missing, err))
			}
			return nil
		},
		Pending: func(state error) {
			if now := state.Error(); now != reported {
				reported = now
				report(now)
			}
		},
	}.Wait(ctx)
	var late *wait.Error
	if errors.As(err, &late) {
		err = &NodeWaitError{
			Name: name, Missing: want.missing(last), Last: last, Asked: asked, After: late.After, Err: late.Err,
		}
	}
	return last, err
}

// denied reports whether a retry cannot help.
func denied(err error) bool {
	var (
		unauthorized *UnauthorizedError
		forbidden    *ForbiddenError
	)
	return errors.As(err, &unauthorized) || errors.As(err, &forbidden)
}

func waitState(n Node, missing []string, err error) string {
	if err != nil {
		return err.Error()
	}
	if !n.Exists {
		return n.State()
	}
	return n.State() + "; waiting for " + strings.Join(missing, ", ")
}
