package rollout

import (
	"fmt"
	"time"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// Defaults of a rollout's durations.
const (
	defaultProgress     = 15 * time.Minute
	defaultDrainTimeout = 5 * time.Minute
	defaultSettle       = 10 * time.Second
	defaultHealthy      = 5 * time.Minute
)

// stage is the place of a node in the rollout.
type stage int

const (
	stageUntouched stage = iota // it has another content, or none
	stageClaimed                // not released yet
	stageChanging               // released; the node has not reported the end
	stageChecking               // the node has reported success
	stageUpdated
	stageFailed
	stageRolledBack
)

// stage returns the place of a node. A node that still works on an earlier content of this rollout
// must finish that first, so it is not untouched.
func (d *decider) stage(n Node) stage {
	s := n.State
	if s == nil || s.Spec.Rollout == "" {
		return stageUntouched
	}
	switch {
	case s.Spec.Verdict == "" && !s.Spec.Released:
		return stageClaimed
	case s.Spec.Verdict == "" && answered(s) && s.Status.Phase == fleetv1.PhaseDone:
		return stageChecking
	case s.Spec.Verdict == "":
		return stageChanging
	case s.Spec.Rollout != d.in.Name || s.Spec.Hash != d.hash:
		return stageUntouched
	case s.Spec.Verdict == fleetv1.VerdictUpdated:
		return stageUpdated
	case s.Spec.Verdict == fleetv1.VerdictRolledBack:
		return stageRolledBack
	}
	return stageFailed
}

// working reports whether the node is on its way, and so may be unavailable.
func (s stage) working() bool { return s == stageClaimed || s == stageChanging || s == stageChecking }

// answered reports whether the status answers the present order.
func answered(s *fleetv1.NodeState) bool {
	return s.Status.Hash == s.Spec.Hash && s.Status.Action == s.Spec.Action
}

// onward returns the next action of a node that is on its way, if there is one.
func (d *decider) onward(n Node, at stage) {
	switch at {
	case stageClaimed:
		d.claimed(n)
	case stageChanging:
		d.changing(n)
	case stageChecking:
		d.checking(n)
	}
}

// claimed drains and releases a node that has fetched the binaries. A claim that is no longer wanted ends, as
// nothing has changed.
func (d *decider) claimed(n Node) {
	apply := n.State.Spec.Action == fleetv1.ActionApply
	switch {
	case d.unwanted(n), apply && (d.stopped() || d.in.Wrong != ""):
		d.withdraw(n)
	case apply && refused(n.State): // a node does nothing for an order to roll back before its release
		d.refused(n)
	case apply && !hasFetched(n.State):
		d.fetching(n)
	case d.in.Spec.Drain == nil, !apply && !n.Ready: // pods cannot leave a node whose kubelet does not work
		d.do(Action{Do: DoRelease, Node: n.Name})
	default:
		limit := DurationOf(d.in.Spec.Drain.Timeout, defaultDrainTimeout)
		if d.expired(d.drainBegin(n.State), limit) {
			d.do(Action{Do: DoConvict, Node: n.Name, Verdict: fleetv1.VerdictFailed, Uncordon: true, Draining: true,
				Reason: fmt.Sprintf("its pods did not leave within %s", limit)})
			return
		}
		if left := n.DrainRound.Add(drainInterval).Sub(d.in.Now); left > 0 {
			d.again(left)
			return
		}
		d.do(Action{Do: DoDrain, Node: n.Name})
		d.again(drainInterval)
	}
}

// unwanted reports whether the rollout no longer wants the order of a node that it chooses.
func (d *decider) unwanted(n Node) bool {
	spec := n.State.Spec
	return d.in.Spec.Operation == fleetv1.OperationAbort || spec.Hash != d.hash || n.Left ||
		(spec.Action == fleetv1.ActionApply) == (d.in.Spec.Operation == fleetv1.OperationRollBack)
}

// withdraw ends an order for which the node has changed nothing.
func (d *decider) withdraw(n Node) {
	spec := n.State.Spec
	switch {
	case spec.Action == fleetv1.ActionApply:
		d.do(Action{Do: DoLetGo, Node: n.Name})
	case spec.Reason != "": // it had failed, and a later rollback must find it
		d.convict(n, fleetv1.VerdictFailed, spec.RollbackGeneration != 0, spec.Reason)
	default: // it still has the content, and a later rollback must find it
		d.convict(n, fleetv1.VerdictUpdated, true, "")
	}
}

// refused reports whether the node has refused its order, since its NodeRollout has another one now.
func refused(s *fleetv1.NodeState) bool { return answered(s) && s.Status.Phase == fleetv1.PhaseRefused }

// refusalPause is the time for which a refused order stays, so that a node that refuses each order costs little.
const refusalPause = time.Minute

// refused withdraws an order that the node has refused. That is no failure of the content: if the rollout still
// wants the node, the next order follows.
func (d *decider) refused(n Node) {
	d.waits = fmt.Sprintf("node %s refuses its order: %s", n.Name, n.State.Status.Message)
	if d.unwanted(n) || d.expired(n.State.Spec.Since.Time, refusalPause) {
		d.withdraw(n)
	}
}

// hasFetched reports whether the node has all binaries of its order.
func hasFetched(s *fleetv1.NodeState) bool {
	return answered(s) && (s.Status.Phase == fleetv1.PhaseFetched || s.Status.Phase == fleetv1.PhaseDone)
}

// fetching waits until a claimed node has the binaries. It is not cordoned yet, so a binary that it cannot get
// moves no pod.
func (d *decider) fetching(n Node) {
	s := n.State
	limit := DurationOf(d.in.Spec.ProgressDeadline, defaultProgress)
	failed := answered(s) && (s.Status.Phase == fleetv1.PhaseRolledBack || s.Status.Phase == fleetv1.PhaseFailed)
	switch {
	case failed:
		d.convict(n, fleetv1.VerdictFailed, true, s.Status.Message)
	case d.expired(s.Spec.Since.Time, limit):
		d.convict(n, fleetv1.VerdictFailed, true,
			late(s, fmt.Sprintf("the node is unchanged: it did not fetch the binaries within %s", limit)))
	}
}

// late returns the reason for the verdict about a node whose time is over, with what the node has reported last.
func late(s *fleetv1.NodeState, reason string) string {
	if answered(s) && s.Status.Message != "" {
		reason += ": " + s.Status.Message
	}
	return reason
}

// drainBegin returns the time at which a claimed node had the binaries, so that its pods may leave.
func (d *decider) drainBegin(s *fleetv1.NodeState) time.Time {
	if s.Spec.Action == fleetv1.ActionRollBack {
		return s.Spec.Since.Time
	}
	return d.reported(s)
}

// reported returns the time of a report by the node's clock, but within the time that the node had for it by
// the controller's. So a clock that is wrong, or lies, prolongs a wait by no more than the progress deadline.
func (d *decider) reported(s *fleetv1.NodeState) time.Time {
	ordered := s.Spec.Since.Time
	latest := ordered.Add(DurationOf(d.in.Spec.ProgressDeadline, defaultProgress))
	at := later(s.Status.Since.Time, ordered)
	if at.After(latest) {
		return latest
	}
	return at
}

// drainInterval is the time from one look at a node's pods to the next.
const drainInterval = 5 * time.Second

// changing handles a released node that has not reported success.
func (d *decider) changing(n Node) {
	s := n.State
	limit := DurationOf(d.in.Spec.ProgressDeadline, defaultProgress)
	switch {
	case refused(s):
		d.refused(n)
	case answered(s) && s.Status.Phase == fleetv1.PhaseRolledBack:
		d.convict(n, fleetv1.VerdictFailed, true, s.Status.Message)
	case answered(s) && s.Status.Phase == fleetv1.PhaseFailed:
		// Its services may not run, so no pod should come.
		d.convict(n, fleetv1.VerdictFailed, false, s.Status.Message)
	case d.expired(s.Spec.Since.Time, limit):
		d.convict(n, fleetv1.VerdictFailed, false, late(s, fmt.Sprintf("the node did not report an end within %s", limit)))
	}
}

// checking waits until a changed node is healthy.
func (d *decider) checking(n Node) {
	if n.State.Spec.Action == fleetv1.ActionRollBack {
		d.checkingReturn(n)
		return
	}
	h := d.healthOf(n)
	if n.Ready && !h.lives && (h.settled || !h.renewed) {
		d.decision.Check = append(d.decision.Check, n.Name)
	}
	switch left := h.deadline.Sub(d.in.Now); {
	case n.Ready && h.lives && h.settled:
		d.convict(n, fleetv1.VerdictUpdated, true, "")
	case left > 0:
		d.again(max(min(h.settles.Sub(d.in.Now), left), leaseInterval))
	case d.in.Spec.OnFailure == fleetv1.OnFailurePause:
		d.convict(n, fleetv1.VerdictFailed, false, h.reason(n))
	default:
		d.do(Action{Do: DoReturn, Node: n.Name, Reason: h.reason(n)})
	}
}

// health says how far a changed node is on its way to be healthy: Ready for the settle time, with a kubelet that has
// renewed the node's lease after it. Ready alone shows little: the API server believes a kubelet that has ended for
// leaseLife. The times of the report, of the condition Ready and of the lease are of the node's clock.
type health struct {
	limit    time.Duration // for which the node may be unhealthy after the change
	settles  time.Time     // when the settle time ends
	deadline time.Time     // when an unhealthy node has failed
	settled  bool          // the settle time is over
	late     bool          // the node was Ready only after the limit
	renewed  bool          // the kubelet has renewed the lease after the change
	lives    bool          // and after the settle time
}

func (d *decider) healthOf(n Node) health {
	changed := n.State.Status.Since.Time // by the node's clock
	done := d.reported(n.State)
	settle := DurationOf(d.in.Spec.Health.Settle, defaultSettle)
	h := health{limit: DurationOf(d.in.Spec.Health.Timeout, defaultHealthy)}
	since := n.ReadySince
	if since.After(d.in.Now) { // by a clock that was ahead: it shows nothing, and the lease shows that the kubelet lives
		since = time.Time{}
	}
	began := later(done, since)
	h.settles, h.deadline = began.Add(settle), done.Add(h.limit)
	h.settled, h.late = !d.in.Now.Before(h.settles), began.After(h.deadline)
	h.renewed, h.lives = n.Lease.After(changed), n.Lease.After(later(changed, since).Add(settle))
	if n.Ready && h.renewed && !h.late { // in time, so that it has the settle time and the next renewal after the limit
		h.deadline = later(h.deadline, h.settles.Add(leaseLife))
	}
	return h
}

// reason returns why the node is not healthy.
func (h health) reason(n Node) string {
	switch {
	case !n.Ready:
		return fmt.Sprintf("the node was not Ready %s after the change", h.limit)
	case !h.renewed:
		return fmt.Sprintf("the kubelet did not renew the node's lease within %s of the change", h.limit)
	case h.late:
		return fmt.Sprintf("the node was Ready, or Ready again, more than %s after the change", h.limit)
	}
	return fmt.Sprintf("the kubelet has not renewed the node's lease since %s after the change",
		n.Lease.Sub(n.State.Status.Since.Time).Round(time.Second))
}

// checkingReturn ends the return of a node to its previous binaries. A rollback waits until the kubelet has renewed
// the node's lease, or the API server no longer believes it: a node that the return has broken must not count as
// usable while the next ones follow.
func (d *decider) checkingReturn(n Node) {
	s := n.State
	if s.Spec.Reason != "" && s.Spec.RollbackGeneration == 0 {
		d.convict(n, fleetv1.VerdictFailed, true, s.Spec.Reason+"; the previous binaries are back")
		return
	}
	limit := DurationOf(d.in.Spec.Health.Timeout, defaultHealthy)
	if n.Ready && !n.Lease.After(s.Status.Since.Time) && !d.expired(d.reported(s), limit) {
		d.decision.Check = append(d.decision.Check, n.Name)
		d.again(leaseInterval)
		return
	}
	d.convict(n, fleetv1.VerdictRolledBack, true, "")
}

// The times of leases. leaseInterval is the shortest time between two looks at a node's lease; leaseLife is the time
// after which the API server no longer believes a kubelet that does not renew it, by Kubernetes' defaults.
const (
	leaseInterval = 2 * time.Second
	leaseLife     = 40 * time.Second
)

// expired reports whether the limit has passed since a time; if not, the decision is made again when it has.
func (d *decider) expired(since time.Time, limit time.Duration) bool {
	left := since.Add(limit).Sub(d.in.Now)
	if left > 0 {
		d.again(left)
	}
	return left <= 0
}

func (d *decider) convict(n Node, verdict fleetv1.Verdict, uncordon bool, reason string) {
	d.do(Action{Do: DoConvict, Node: n.Name, Verdict: verdict, Uncordon: uncordon, Reason: reason})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
