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

// Drained is what a drain did.
type Drained struct {
	Cordoned bool  `json:"cordoned"` // by us, now or in an earlier run: Uncordon undoes it
	Evicted  []Pod `json:"evicted,omitempty"`
}

// Drain cordons a node and evicts its pods through the Eviction API, respecting
// PodDisruptionBudgets, until they are gone or the time is over. Pods of
// DaemonSets, mirror pods and pods that have ended stay. On failure it takes its
// own cordon back. A node that does not exist has nothing to drain.
//
// It is not kubectl's drain package, which would bring kubectl's whole command
// line along, and cannot tell which budget forbids an eviction.
func (c *Cluster) Drain(ctx context.Context, name string, o DrainOptions, r Reporter) (Drained, error) {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	n, err := c.Node(ctx, name)
	if err != nil || !n.Exists {
		return Drained{}, err
	}
	if _, err := c.podsToEvict(ctx, name, o); err != nil { // before anything changes
		return Drained{}, err
	}
	r.Step("cordon node %s", name)
	done := Drained{}
	if done.Cordoned, err = c.cordon(ctx, name); err != nil {
		return Drained{}, err
	}
	done.Evicted, err = c.evict(ctx, name, o, r)
	if err != nil {
		return c.takeBackCordon(ctx, name, done, err)
	}
	return done, nil
}

// evict empties a node that gets no new pods any more.
func (c *Cluster) evict(ctx context.Context, name string, o DrainOptions, r Reporter) ([]Pod, error) {
	// Again: some may have come just before the cordon.
	pods, err := c.podsToEvict(ctx, name, o)
	if err != nil {
		return nil, err
	}
	e := &eviction{cluster: c, node: name, options: o, reporter: r, began: time.Now(), leaving: map[types.UID]*leaving{}}
	for _, p := range pods {
		e.leaving[p.UID] = &leaving{pod: p}
	}
	bounded, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	err = e.run(ctx, bounded)
	return e.gone, err
}

// takeBackCordon undoes our cordon because a drain failed, also when ctx is over.
func (c *Cluster) takeBackCordon(ctx context.Context, name string, done Drained, because error) (Drained, error) {
	if !done.Cordoned {
		return done, because
	}
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCancel)
	defer cancel()
	if _, err := c.Uncordon(lasting, name); err != nil {
		return done, fmt.Errorf("%w (and it stays cordoned: %w)", because, err)
	}
	done.Cordoned = false
	return done, because
}

// eviction is the emptying of one node.
type eviction struct {
	cluster  *Cluster
	node     string
	options  DrainOptions
	reporter Reporter
	began    time.Time
	leaving  map[types.UID]*leaving
	gone     []Pod
	told     string
}

// leaving is a pod on its way out.
type leaving struct {
	pod      *corev1.Pod
	accepted bool      // its eviction was
	next     time.Time // when to ask again, where it was not
	refused  string    // the API server's words
}

// evictionRetry is how long after a refusal an eviction is asked for again: a
// budget needs another pod to become ready first, which takes seconds.
const evictionRetry = 5 * time.Second

// run asks for evictions and looks who is left, until nobody is. bounded is ctx
// with the drain's own deadline.
func (e *eviction) run(ctx, bounded context.Context) error {
	var last error
	for len(e.leaving) > 0 {
		err := e.ask(bounded)
		if err == nil {
			err = e.look(bounded)
		}
		if denied(err) {
			return err
		}
		if len(e.leaving) == 0 {
			return nil
		}
		if bounded.Err() == nil { // else err only says that the time is over
			last = err
			e.tell(err)
		}
		if wait.For(bounded, pollInterval) == nil {
			continue
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return fmt.Errorf("drain node %s: %w", e.node, context.Cause(ctx))
		}
		return e.blocked(ctx, last)
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

// request asks for one eviction. That it is refused for now is no error.
func (e *eviction) request(ctx context.Context, l *leaving) error {
	err := e.cluster.client.PolicyV1().Evictions(l.pod.Namespace).Evict(ctx, evictionOf(l.pod, e.options))
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // a conflict: a namesake is there in its place
		l.accepted, l.refused = true, ""
	case apierrors.IsTooManyRequests(err), // a budget forbids it
		apierrors.IsInternalError(err), // several budgets cover it
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		l.next, l.refused = time.Now().Add(evictionRetry), refusal(err)
	default:
		return e.cluster.fail("evict pod "+podOf(l.pod).String(), evictionPermission(l.pod.Namespace), err)
	}
	return nil
}

// refusal is why an eviction was refused, in the API server's words: those about
// the budget, where it says any.
func refusal(err error) string {
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok {
		return cause.Message
	}
	return err.Error()
}

// evictionOf is the request to evict this very pod, not one that took its name.
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

// look forgets the pods that are gone.
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
		e.gone = append(e.gone, podOf(l.pod))
		e.reporter.Info("pod %s has left", podOf(l.pod))
	}
	return nil
}

// tell says who is waited for, when that has changed.
func (e *eviction) tell(err error) {
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
	if now := strings.Join(state, "; "); now != e.told {
		e.told = now
		e.reporter.Step("drain node %s: waiting for pods %s", e.node, now)
	}
}

// blocked says who did not leave, and which budgets are in the way.
func (e *eviction) blocked(ctx context.Context, last error) error {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCancel)
	defer cancel()
	failed := &DrainBlockedError{Node: e.node, After: time.Since(e.began), Evicted: e.gone, Err: last}
	for _, l := range e.ordered() {
		b := BlockedPod{Pod: podOf(l.pod), Message: "it was told to end, and has not"}
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

// evictionsAnswerAtOnce keeps client-go from repeating refused evictions by
// itself: it would sleep up to a hundred seconds in one call, while other pods
// wait for their turn.
func evictionsAnswerAtOnce(next http.RoundTripper) http.RoundTripper { return impatient{next} }

type impatient struct{ next http.RoundTripper }

func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := i.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusTooManyRequests && strings.HasSuffix(r.URL.Path, "/eviction") {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// WrappedRoundTripper lets client-go see what is inside.
func (i impatient) WrappedRoundTripper() http.RoundTripper { return i.next }

// DrainBlockedError: pods did not leave in time. The node takes pods again, if
// it was us who cordoned it.
type DrainBlockedError struct {
	Node    string
	After   time.Duration
	Pods    []BlockedPod
	Evicted []Pod // who has left
	Err     error // of the last request, where that is why
}

func (e *DrainBlockedError) Error() string {
	s := fmt.Sprintf("drain node %s: after %s still there: %s", e.Node, e.After.Round(time.Second), listed(e.Pods))
	if e.Err != nil {
		s += fmt.Sprintf("; last request: %v", e.Err)
	}
	return s + "; scale up what the budgets protect, give it longer (--drain-timeout), or go without draining"
}
func (e *DrainBlockedError) Unwrap() error { return e.Err }

// DrainRefusedError: pods are there that a drain would lose. Nothing was evicted.
type DrainRefusedError struct {
	Node string
	Pods []BlockedPod
}

func (e *DrainRefusedError) Error() string {
	return fmt.Sprintf("drain node %s: it would lose: %s; delete those pods yourself, or go without draining", e.Node, listed(e.Pods))
}
