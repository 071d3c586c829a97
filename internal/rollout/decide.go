package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// Decide returns the next actions of a rollout. At most one action concerns each node. Decide never
// touches a node while MaxUnavailable others are unavailable, after FailureLimit nodes have failed,
// outside the window, during a canary's pause, while the rollout is paused, or if its content is wrong. Nodes that were touched
// before always go on to their end. A rollback also touches nodes that are unavailable themselves, at most
// MaxUnavailable at once.
func Decide(in Input) Decision {
	in.Nodes = slices.SortedFunc(slices.Values(in.Nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	d := &decider{in: in, hash: HashOf(in.Spec.Content)}
	d.count()
	d.listFailures()
	for _, n := range in.Nodes {
		d.onward(n, d.stage(n))
	}
	if in.Spec.Operation == fleetv1.OperationRollBack {
		d.takeBack()
	} else {
		d.touch()
	}
	d.finishStatus()
	return d.decision
}

// decider makes one decision.
type decider struct {
	in       Input
	hash     string
	decision Decision

	counted counts
	failed  []fleetv1.FailedNode // with this content, also those that were deleted since
	waits   string               // why no further node is touched now; "" if nothing prevents it
}

// counts are the numbers of nodes by their stage.
type counts struct {
	untouched, working, updated, failed, rolledBack int
	unavailable                                     int // not working, and not Ready or cordoned
	toReturn                                        int // with the content, to be taken back by a rollback
}

func (d *decider) count() {
	for _, n := range d.in.Nodes {
		at := d.stage(n)
		switch {
		case at.working():
			d.counted.working++
		case at == stageUpdated:
			d.counted.updated++
		case at == stageFailed:
			d.counted.failed++
		case at == stageRolledBack:
			d.counted.rolledBack++
		default:
			d.counted.untouched++
		}
		if !at.working() && !usable(n) {
			d.counted.unavailable++
		}
		if d.toReturn(n) {
			d.counted.toReturn++
		}
	}
}

// listFailures adds the nodes that have failed since the last decision to those before. A node that is deleted stays
// in the list: else a bad content would go over all nodes of a cluster that replaces broken ones.
func (d *decider) listFailures() {
	if d.in.Before.Hash == d.hash {
		d.failed = slices.Clone(d.in.Before.FailedNodes)
	}
	for _, n := range d.in.Nodes {
		if d.stage(n) != stageFailed {
			continue
		}
		if one := (fleetv1.FailedNode{Name: n.Name, StateUID: n.State.UID}); !slices.Contains(d.failed, one) {
			d.failed = append(d.failed, one)
		}
	}
}

// usable reports whether a node serves pods.
func usable(n Node) bool { return n.Ready && !n.Cordoned }

// failureLimit returns the number of failed nodes that stops the rollout.
func (d *decider) failureLimit() int {
	if d.in.Spec.OnFailure == fleetv1.OnFailurePause {
		if accepted := d.in.Spec.AcceptedFailures; accepted != nil && accepted.Hash == d.hash {
			return int(accepted.Nodes) + 1
		}
		return 1
	}
	return max(int(d.in.Spec.FailureLimit), 1)
}

// stopped reports whether failures have stopped the rollout.
func (d *decider) stopped() bool { return len(d.failed) >= d.failureLimit() }

// remedy returns what lets a rollout go on that failures have stopped.
func (d *decider) remedy() string {
	if d.in.Spec.OnFailure == fleetv1.OnFailurePause {
		return "nodes have failed: correct spec.content, or accept the failures with `swdt fleet resume`"
	}
	return "nodes have failed: correct spec.content, or raise spec.failureLimit"
}

// touch claims further nodes for the content.
func (d *decider) touch() {
	room := d.room()
	var unusable []string
	for _, n := range d.in.Nodes {
		switch {
		case d.stage(n) != stageUntouched:
		case !usable(n):
			unusable = append(unusable, n.Name)
		case room > 0:
			d.do(Action{Do: DoClaim, Node: n.Name, Order: fleetv1.ActionApply})
			room--
		}
	}
	if d.waits == "" && len(d.decision.Actions)+d.counted.working == 0 && len(unusable) > 0 {
		d.waits = fmt.Sprintf("cordoned or not Ready: %s; the rollout waits until they are available", few(unusable))
	}
}

// few returns the first names for a message, and the number of the others.
func few(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// gates returns the gates of a rollout, in the order in which they are asked. Each returns why it keeps the rollout
// from touching a further node, or "" if it is open.
func (d *decider) gates() []func() (why string) {
	return []func() string{
		d.aborted, d.wrongContent, d.failuresStop, d.paused, d.windowClosed, d.canaryPauses, d.tooFewAvailable,
	}
}

func (d *decider) aborted() string {
	return ifSo(d.in.Spec.Operation == fleetv1.OperationAbort, "it was aborted")
}

func (d *decider) wrongContent() string { return d.in.Wrong }

func (d *decider) failuresStop() string { return ifSo(d.stopped(), d.remedy()) }

func (d *decider) paused() string { return ifSo(d.in.Spec.Paused, "it is paused") }

func (d *decider) windowClosed() string {
	open, change, err := window(d.in.Spec.Window, d.in.Now)
	if err != nil {
		return err.Error()
	}
	if !change.IsZero() {
		d.again(change.Sub(d.in.Now))
	}
	return ifSo(!open, "the window is closed until "+change.Format(time.RFC3339))
}

func (d *decider) canaryPauses() string {
	_, _, pause := Step(d.in.Spec.Canary, len(d.in.Nodes), d.updatedAt(), d.in.Now)
	d.again(pause)
	return ifSo(pause > 0, "the canary step pauses until "+d.in.Now.Add(pause).UTC().Format(time.RFC3339))
}

// tooFewAvailable is open while the rollout works on nodes: they become available again.
func (d *decider) tooFewAvailable() string {
	return ifSo(d.spare() <= 0 && d.counted.working == 0,
		"too many nodes are cordoned or not Ready: make them available, or raise spec.maxUnavailable")
}

func ifSo(so bool, why string) string {
	if so {
		return why
	}
	return ""
}

// closed asks gates, records why the first closed one keeps the rollout from a further node, and reports whether one
// does.
func (d *decider) closed(gates ...func() (why string)) bool {
	for _, gate := range gates {
		if why := gate(); why != "" {
			d.waits = why
			return true
		}
	}
	return false
}

// room returns how many further nodes may be touched now.
func (d *decider) room() int {
	if d.closed(d.gates()...) {
		return 0
	}
	c := d.counted
	_, most, _ := Step(d.in.Spec.Canary, len(d.in.Nodes), d.updatedAt(), d.in.Now)
	room := min(d.spare(), most-c.updated-c.working)
	if c.updated == 0 { // nothing shows yet that the content works
		room = min(room, d.failureLimit()-len(d.failed)-c.working)
	}
	return room
}

// takeBack claims the nodes that have the content for the return to their previous binaries. A node that is
// unavailable already needs no room: else a content that breaks nodes after their success could not be taken back.
func (d *decider) takeBack() {
	if d.closed(d.wrongContent) { // a node would refuse the order
		return
	}
	d.closed(d.tooFewAvailable) // a node that is unavailable already is taken back nevertheless
	room, places := d.spare(), d.mostUnavailable()-d.counted.working
	for _, n := range d.in.Nodes {
		if places <= 0 {
			return
		}
		if !d.toReturn(n) || usable(n) && room <= 0 {
			continue
		}
		d.do(Action{Do: DoClaim, Node: n.Name, Order: fleetv1.ActionRollBack, Reason: n.State.Spec.Reason})
		d.waits = ""
		places--
		if usable(n) {
			room--
		}
	}
}

// toReturn reports whether a rollback must take the node back: it has the content, as its last report shows. A node
// whose return has failed before it began is tried again by each further generation of the rollout, but once.
func (d *decider) toReturn(n Node) bool {
	switch d.stage(n) {
	case stageUpdated:
		return true
	case stageFailed:
		s := n.State
		applied := s.Status.Hash == s.Spec.Hash && s.Status.Action == fleetv1.ActionApply &&
			s.Status.Phase == fleetv1.PhaseDone
		keeps := s.Spec.Action == fleetv1.ActionRollBack && refused(s) // it was ordered back from the content, and is not
		return (applied || keeps) &&
			(s.Spec.Action == fleetv1.ActionApply || s.Spec.RollbackGeneration != d.in.Generation)
	}
	return false
}

// mostUnavailable returns how many nodes may be unavailable at once.
func (d *decider) mostUnavailable() int { return share(d.in.Spec.MaxUnavailable, len(d.in.Nodes), 1) }

// spare returns how many further nodes may become unavailable.
func (d *decider) spare() int { return d.mostUnavailable() - d.counted.working - d.counted.unavailable }

func (d *decider) do(a Action) { d.decision.Actions = append(d.decision.Actions, a) }

// again makes the decision be repeated after that time at the latest.
func (d *decider) again(after time.Duration) {
	if after > 0 && (d.decision.Again == 0 || after < d.decision.Again) {
		d.decision.Again = after
	}
}
