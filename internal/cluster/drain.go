package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swdt-dev/swdt/internal/wait"
)

// DrainOptions are the options of kubectl drain that swdt supports.
type DrainOptions struct {
	Timeout        time.Duration  // default 5 minutes
	GracePeriod    *time.Duration // the grace period of every pod; nil: each pod's own
	DeleteEmptyDir bool           // evict pods even if they lose emptyDir volumes
	Force          bool           // evict pods even if no controller would recreate them
	// Usable reports whether the node works although the change failed with err; if so,
	// WhileDrained uncordons the node. nil: the node does not work after any failed change.
	Usable func(err error) bool
}

// Reporter receives the progress of draining. A ui.Reporter implements it.
type Reporter interface {
	Step(format string, args ...any)
	Info(format string, args ...any)
	Warn(format string, args ...any)
}

// Drained is the result of a drain.
type Drained struct {
	Cordoned bool  `json:"cordoned"` // swdt cordoned the node, now or in an earlier run; Uncordon undoes that
	Evicted  []Pod `json:"evicted,omitempty"`
}

// Drain cordons a machine's node and evicts its pods through the Eviction API, respecting
// PodDisruptionBudgets, until the pods are gone or the timeout has passed. It does not evict pods
// of DaemonSets, mirror pods and pods that have ended. If Drain fails, it removes its own cordon.
// If the node does not exist, Drain does nothing. If the Node belongs to another machine of the
// same name, the error is an *OtherMachineError, and nothing was changed.
//
// It does not use kubectl's drain package, which would add kubectl's whole command line
// and cannot report which budget forbids an eviction.
func (c *Cluster) Drain(ctx context.Context, m Machine, o DrainOptions, r Reporter) (Drained, error) {
	name := m.Node
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	n, err := c.Node(ctx, name)
	if err != nil || !n.Exists {
		return Drained{}, err
	}
	if err := m.check(n); err != nil {
		return Drained{}, err
	}
	// Check before any change whether the drain would lose pods.
	if _, err := c.podsToEvict(ctx, name, o, daemonSets{}); err != nil {
		return Drained{}, err
	}
	r.Step("cordon node %s", name)
	done := Drained{}
	if _, done.Cordoned, err = c.cordon(ctx, name); err != nil {
		return Drained{}, err
	}
	done.Evicted, err = c.evict(ctx, name, o, r)
	if err != nil {
		return c.takeBackCordon(ctx, name, done, err)
	}
	return done, nil
}

// evict evicts the pods of a cordoned node.
func (c *Cluster) evict(ctx context.Context, name string, o DrainOptions, r Reporter) ([]Pod, error) {
	// List the pods again, since some may have been scheduled just before the cordon.
	pods, err := c.podsToEvict(ctx, name, o, daemonSets{})
	if err != nil {
		return nil, err
	}
	e := &eviction{cluster: c, node: name, options: o, reporter: r, began: time.Now(), leaving: map[types.UID]*leaving{}}
	for _, p := range pods {
		e.leaving[p.UID] = &leaving{pod: p}
	}
	err = e.run(ctx)
	return e.evicted, err
}

// takeBackCordon removes swdt's cordon after a drain has failed, even if ctx has ended.
func (c *Cluster) takeBackCordon(ctx context.Context, name string, done Drained, because error) (Drained, error) {
	if !done.Cordoned {
		return done, because
	}
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCancel)
	defer cancel()
	if _, err := c.Uncordon(lasting, name); err != nil {
		return done, fmt.Errorf("%w; and %w", because, &CordonedError{Node: name, Err: err})
	}
	done.Cordoned = false
	return done, because
}

// eviction drains one node.
type eviction struct {
	cluster  *Cluster
	node     string
	options  DrainOptions
	reporter Reporter
	began    time.Time
	leaving  map[types.UID]*leaving
	evicted  []Pod
	failed   error // the error of the last round that ctx did not interrupt
	reported string
}

// leaving is a pod that must leave the node.
type leaving struct {
	pod      *corev1.Pod
	accepted bool      // its eviction was accepted
	next     time.Time // when to request the eviction again, if it was refused
	refused  string    // the API server's reason
}

// evictionRetry is the time after which a refused eviction is requested again. A budget refuses
// until another pod is ready, which takes seconds.
const evictionRetry = 5 * time.Second

// run requests evictions and checks which pods are left, until no pod is left or the drain's
// timeout has passed.
func (e *eviction) run(ctx context.Context) error {
	err := wait.Condition{
		Name:     fmt.Sprintf("the pods of node %s to leave", e.node),
		Interval: e.cluster.poll,
		Limit:    e.options.Timeout,
		Look:     e.round,
		Pending:  func(error) { e.reportWaiting(e.failed) },
	}.Wait(ctx)
	var late *wait.Error
	switch {
	case !errors.As(err, &late):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("drain node %s: %w", e.node, late.Err)
	}
	return e.blocked(ctx, e.failed)
}

// errPodsLeft is the state of a drain while some pods have not left yet.
var errPodsLeft = errors.New("pods are left")

// round requests the evictions that are due and checks which pods are left.
func (e *eviction) round(ctx context.Context) error {
	if len(e.leaving) == 0 {
		return nil
	}
	err := e.ask(ctx)
	if err == nil {
		err = e.look(ctx)
	}
	if denied(err) {
		return wait.Stop(err)
	}
	if ctx.Err() == nil { // if ctx has ended, err only reports its end
		e.failed = err
	}
	if len(e.leaving) > 0 {
		return errPodsLeft
	}
	return nil
}

// ask requests the evictions that are due.
func (e *eviction) ask(ctx context.Context) error {
	for _, l := range e.ordered() {
		if l.accepted || time.Now().Before(l.next) {
			continue
		}
		if err := e.request(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// request requests one eviction. A temporary refusal is not an error.
func (e *eviction) request(ctx context.Context, l *leaving) error {
	err := e.cluster.client.PolicyV1().Evictions(l.pod.Namespace).Evict(ctx, evictionOf(l.pod, e.options))
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // conflict: another pod has taken the name
		l.accepted, l.refused = true, ""
	case apierrors.IsTooManyRequests(err), // a budget forbids the eviction
		apierrors.IsInternalError(err), // several budgets cover the pod
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		l.next, l.refused = time.Now().Add(evictionRetry), refusal(err)
	default:
		return e.cluster.fail("evict pod "+podOf(l.pod).String(), evictionPermission(l.pod.Namespace), err)
	}
	return nil
}

// refusal returns the API server's reason for refusing an eviction: the cause that concerns
// the PodDisruptionBudget, if there is one.
func refusal(err error) string {
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok {
		return cause.Message
	}
	return err.Error()
}

// evictionOf returns the request to evict exactly this pod, and no later pod of the same name.
func evictionOf(p *corev1.Pod, o DrainOptions) *policyv1.Eviction {
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
	if o.GracePeriod != nil {
		seconds := int64(o.GracePeriod.Seconds())
		options.GracePeriodSeconds = &seconds
	}
	return &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: options,
	}
}

// look removes from e.leaving the pods that have ended or no longer exist.
func (e *eviction) look(ctx context.Context) error {
	pods, err := e.cluster.PodsOn(ctx, e.node)
	if err != nil {
		return err
	}
	there := map[types.UID]bool{}
	for _, p := range pods {
		there[p.UID] = !ended(p)
	}
	for _, l := range e.ordered() {
		if there[l.pod.UID] {
			continue
		}
		delete(e.leaving, l.pod.UID)
		e.evicted = append(e.evicted, podOf(l.pod))
		e.reporter.Info("pod %s has left", podOf(l.pod))
	}
	return nil
}

// reportWaiting reports the pods that the drain waits for, unless they are the same as in the last
// report.
func (e *eviction) reportWaiting(err error) {
	var ending, refused []string
	for _, l := range e.ordered() {
		if l.refused == "" {
			ending = append(ending, podOf(l.pod).String())
		} else {
			refused = append(refused, podOf(l.pod).String())
		}
	}
	var state []string
	if len(ending) > 0 {
		state = append(state, "to end: "+strings.Join(ending, ", "))
	}
	if len(refused) > 0 {
		state = append(state, "to be allowed to: "+strings.Join(refused, ", "))
	}
	if err != nil {
		state = append(state, "for the API server: "+err.Error())
	}
	if now := strings.Join(state, "; "); now != e.reported {
		e.reported = now
		e.reporter.Step("drain node %s: waiting for pods %s", e.node, now)
	}
}

// stillRuns is the message of a pod whose eviction was accepted.
const stillRuns = "it was asked to end, and still runs"

// blocked returns an error that has the pods that did not leave, with the budgets that block
// them.
func (e *eviction) blocked(ctx context.Context, last error) error {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCancel)
	defer cancel()
	failed := &DrainBlockedError{Node: e.node, After: time.Since(e.began), Evicted: e.evicted, Err: last}
	for _, l := range e.ordered() {
		b := BlockedPod{Pod: podOf(l.pod), Message: stillRuns}
		if l.refused != "" {
			b.Message = l.refused
			b.Budgets = e.cluster.budgets(lasting, l.pod)
		} else if !l.accepted {
			b.Message = "its eviction could not be asked for"
		}
		failed.Pods = append(failed.Pods, b)
	}
	return failed
}

func (e *eviction) ordered() []*leaving {
	return slices.SortedFunc(maps.Values(e.leaving), func(a, b *leaving) int {
		return strings.Compare(podOf(a.pod).String(), podOf(b.pod).String())
	})
}

// evictionsAnswerAtOnce prevents client-go from retrying a refused eviction by itself. client-go
// would sleep up to a hundred seconds in one call, while other pods wait to be evicted.
func evictionsAnswerAtOnce(next http.RoundTripper) http.RoundTripper { return noRetryAfter{next} }

type noRetryAfter struct{ next http.RoundTripper }

func (i noRetryAfter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := i.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusTooManyRequests && strings.HasSuffix(r.URL.Path, "/eviction") {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// WrappedRoundTripper gives client-go access to the wrapped round tripper.
func (i noRetryAfter) WrappedRoundTripper() http.RoundTripper { return i.next }

// DrainBlockedError reports pods that did not leave in time. If swdt had cordoned the node, it has
// removed the cordon.
type DrainBlockedError struct {
	Node    string
	After   time.Duration
	Pods    []BlockedPod
	Evicted []Pod // the pods that have left
	Err     error // the error of the last request, if that is the cause
}

func (e *DrainBlockedError) Error() string {
	s := fmt.Sprintf("drain node %s: after %s these pods are still there: %s", e.Node, e.After.Round(time.Second),
		BlockedPods(e.Pods))
	if e.Err != nil {
		s += fmt.Sprintf("; last request: %v", e.Err)
	}
	return s + "; scale up what the budgets protect, give it longer (--drain-timeout), or go without draining"
}
func (e *DrainBlockedError) Unwrap() error { return e.Err }

// DrainRefusedError reports pods that a drain would lose. Nothing was evicted.
type DrainRefusedError struct {
	Node string
	Pods []BlockedPod
}

func (e *DrainRefusedError) Error() string {
	return fmt.Sprintf("drain node %s: it would lose: %s; delete those pods yourself, or go without draining",
		e.Node, BlockedPods(e.Pods))
}
