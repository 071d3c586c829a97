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

	"github.com/swdt-dev/swdt/internal/wait"
)

// pollInterval is how often a wait looks again. It polls rather than watches: a
// watch has to be begun anew whenever the server or a proxy ends it, and one
// object a second is nothing to an API server.
const pollInterval = time.Second

// Wanted is what AwaitNode waits for: all of it. Everything implies Registered.
type Wanted struct {
	Registered  bool
	Ready       bool
	LeaseAfter  time.Time // a lease renewed after this, by the node's clock
	Allocatable bool      // CPU and memory for pods, more than none
	Labels      map[string]string
	Taints      []corev1.Taint
}

// missing is what of the wanted the node does not have yet, for people.
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
	for _, key := range slices.Sorted(maps.Keys(w.Labels)) {
		if has, ok := n.Labels[key]; !ok || has != w.Labels[key] {
			missing = append(missing, "label "+key+"="+w.Labels[key])
		}
	}
	for _, t := range w.Taints {
		if !slices.ContainsFunc(n.Taints, func(has corev1.Taint) bool { return has.MatchTaint(&t) && has.Value == t.Value }) {
			missing = append(missing, "taint "+t.ToString())
		}
	}
	return missing
}

// NodeWaitError: the node did not become as wanted in time.
type NodeWaitError struct {
	Name    string
	Missing []string // what of the wanted is not so
	Last    Node     // as last seen
	Asked   error    // why it could not be seen, when last asked
	After   time.Duration
	Err     error
}

func (e *NodeWaitError) Error() string {
	seen := "last seen " + e.Last.State()
	if e.Asked != nil {
		seen += "; last asked in vain: " + e.Asked.Error()
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
	return "see kubectl describe node " + e.Last.Name
}

// AwaitNode waits until the node is as wanted, as long as ctx lasts, and returns
// it. It tells report each new state of what it waits for. The API server may be
// away for a while meanwhile; refused credentials or permissions end the wait. The error of
// a wait in vain is a *NodeWaitError.
func (c *Cluster) AwaitNode(ctx context.Context, name string, want Wanted, report func(state string)) (Node, error) {
	began, told := time.Now(), ""
	last := Node{Name: name}
	for {
		n, err := c.Node(ctx, name)
		switch {
		case err == nil:
			last = n
		case denied(err):
			return last, err
		}
		missing := want.missing(last)
		if err == nil && len(missing) == 0 {
			return last, nil
		}
		if state := waitState(last, missing, err); state != told && ctx.Err() == nil {
			told = state
			report(state)
		}
		if wait.For(ctx, pollInterval) != nil {
			failed := &NodeWaitError{Name: name, Missing: missing, Last: last, After: time.Since(began), Err: context.Cause(ctx)}
			if err != nil && !errors.Is(err, ctx.Err()) {
				failed.Asked = err
			}
			return last, failed
		}
	}
}

// denied is whether asking again cannot help.
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
