package cluster

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// DrainOptions are those of kubectl drain that matter here.
type DrainOptions struct {
	Timeout        time.Duration  // default 5 minutes
	GracePeriod    *time.Duration // of every pod; nil is each pod's own
	DeleteEmptyDir bool           // also pods whose emptyDir volumes are lost by it
	Force          bool           // also pods that nothing would make anew
}

// Reporter hears what draining does; a ui.Reporter is one.
type Reporter interface {
	Step(format string, args ...any)
	Info(format string, args ...any)
	Warn(format string, args ...any)
}

// Pod names a pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Drained is what a drain did.
type Drained struct {
	Cordoned bool  `json:"cordoned"` // by us, now or in an earlier run: Uncordon undoes it
	Evicted  []Pod `json:"evicted,omitempty"`
}

// BlockedPod is a pod that does not leave, and why.
type BlockedPod struct {
	Pod
	Budgets []string `json:"budgets,omitempty"` // the PodDisruptionBudgets that cover it
	Message string   `json:"message"`
}

// DrainRefusedError: pods are there that a drain would lose. Nothing was changed.
type DrainRefusedError struct {
	Node string
	Pods []BlockedPod
}

func (e *DrainRefusedError) Error() string { return "" }

// DrainBlockedError: pods did not leave in time. The node takes pods again, if
// it was us who cordoned it.
type DrainBlockedError struct {
	Node    string
	After   time.Duration
	Pods    []BlockedPod
	Evicted []Pod // which have left
	Err     error
}

func (e *DrainBlockedError) Error() string { return "" }
func (e *DrainBlockedError) Unwrap() error { return e.Err }

// Drain cordons a node and evicts its pods through the Eviction API, respecting
// PodDisruptionBudgets, until they are gone or the time is over. Pods of
// DaemonSets, mirror pods and pods that have ended stay. On failure it takes its
// own cordon back. A node that does not exist has nothing to drain.
func (c *Cluster) Drain(ctx context.Context, name string, o DrainOptions, r Reporter) (Drained, error) {
	return Drained{}, errors.ErrUnsupported
}

// Uncordon takes back the cordon that Drain made, also in an earlier run, and
// returns whether there was one. Somebody else's cordon stays.
func (c *Cluster) Uncordon(ctx context.Context, name string) (bool, error) {
	return false, errors.ErrUnsupported
}

func evictionsAnswerAtOnce(next http.RoundTripper) http.RoundTripper { return next }
