package rollout

import (
	"fmt"
	"slices"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// The states of a rollout, as people read them.
const (
	StateRolling     = "Rolling"
	StateWaiting     = "Waiting"
	StatePaused      = "Paused"
	StateStopped     = "Stopped"
	StateAborted     = "Aborted"
	StateRollingBack = "RollingBack"
	StateRolledBack  = "RolledBack"
	StateComplete    = "Complete"
)

// finishStatus fills in the status before the actions are taken.
func (d *decider) finishStatus() {
	c := d.counted
	d.decision.Status = fleetv1.NodeRolloutStatus{
		Hash: d.hash, Nodes: int32(len(d.in.Nodes)), Updated: int32(c.updated), Working: int32(c.working),
		Failed: int32(c.failed), FailedNodes: d.failed[:min(len(d.failed), d.failureLimit())],
		RolledBack: int32(c.rolledBack), Unavailable: int32(c.unavailable),
	}
	d.decision.Status.State, d.decision.Status.Message = d.state()
}

func (d *decider) state() (state, message string) {
	c, spec := d.counted, d.in.Spec
	switch {
	case spec.Operation == fleetv1.OperationRollBack && c.untouched == len(d.in.Nodes) && d.returnedBefore():
		return StateStopped, "spec.operation is RollBack, and an earlier content was taken back: `swdt fleet resume` " +
			"brings this content to the nodes"
	case spec.Operation == fleetv1.OperationRollBack && c.updated+c.working+c.failed == 0:
		return StateRolledBack, "no node has the content"
	case spec.Operation == fleetv1.OperationRollBack && c.working == 0 && c.toReturn > 0 && d.in.Wrong != "":
		return StateStopped, d.in.Wrong
	case spec.Operation == fleetv1.OperationRollBack && c.toReturn+c.working == 0:
		return StateRolledBack, fmt.Sprintf("%d nodes failed, before the rollback or in it: their NodeStates have the "+
			"reasons", c.failed)
	case spec.Operation == fleetv1.OperationRollBack:
		return StateRollingBack, d.waits
	case c.updated == len(d.in.Nodes) && c.updated > 0:
		return StateComplete, ""
	case spec.Operation == fleetv1.OperationAbort:
		return StateAborted, d.ending()
	case d.in.Wrong != "":
		return StateStopped, d.in.Wrong
	case d.stopped():
		return StateStopped, fmt.Sprintf("%s failed; %s", d.failures(), d.waits)
	case len(d.in.Nodes) == 0:
		return StateWaiting, "spec.selector chooses no Windows node"
	case c.untouched == 0 && c.working == 0:
		return StateComplete, fmt.Sprintf("all but %d nodes have the content", c.failed+c.rolledBack)
	case spec.Paused:
		return StatePaused, d.ending()
	case d.waits != "":
		return StateWaiting, d.waits
	}
	return StateRolling, ""
}

// returnedBefore reports whether this rollout has taken back another content than its present one.
func (d *decider) returnedBefore() bool {
	return slices.ContainsFunc(d.in.Nodes, func(n Node) bool {
		return n.State != nil && n.State.Spec.Rollout == d.in.Name && n.State.Spec.Hash != d.hash &&
			n.State.Spec.Verdict == fleetv1.VerdictRolledBack
	})
}

// failures counts the nodes that have failed, and those of them that were deleted, replaced or relabelled since.
func (d *decider) failures() string {
	gone := len(d.failed)
	for _, n := range d.in.Nodes {
		if n.State != nil && slices.Contains(d.failed, fleetv1.FailedNode{Name: n.Name, StateUID: n.State.UID}) {
			gone--
		}
	}
	text := fmt.Sprintf("%d of %d nodes", len(d.failed)-gone, len(d.in.Nodes))
	if gone > 0 {
		text += fmt.Sprintf(", and %d that have gone since,", gone)
	}
	return text
}

// ending explains nodes that are still on their way although no further node will be touched.
func (d *decider) ending() string {
	if d.counted.working == 0 {
		return ""
	}
	return fmt.Sprintf("%d nodes that were touched before go on", d.counted.working)
}

// Degraded reports whether a status shows failed nodes. Those that have gone since count until all nodes are updated.
func Degraded(s fleetv1.NodeRolloutStatus) bool {
	return s.Failed > 0 || len(s.FailedNodes) > 0 && s.Updated < s.Nodes
}

// Progressing reports whether further nodes will be touched without a person's help.
func Progressing(s fleetv1.NodeRolloutStatus) bool {
	return s.State == StateRolling || s.State == StateWaiting || s.State == StateRollingBack
}
