// Package rollout decides how a change goes over the Windows nodes of a cluster. Decide is a pure
// function of a NodeRollout with its last status, its nodes and the time: it returns the next actions, and keeps
// nothing between two calls. So a controller that was killed at any moment goes on where the objects are.
//
//   - rollout.go: the inputs and the actions; decide.go: the decision; node.go: the next action of one node
//   - budget.go: how many nodes may change; window.go: when; hash.go: the identity of a content
//   - status.go: the status of a rollout
//   - content/: the content as a node file
//   - control/: the controller; onnode/: the program on the node; manifests/: the installation
//
// A node that a rollout touches goes through these orders, which its NodeState records:
//
//	claimed → the node has fetched the binaries → (drained) → released: Apply → healthy → verdict Updated
//	                                                                         → failed  → verdict Failed
//	                                                    → not Ready in time → RollBack → verdict Failed
//	        → they are refused, or late         → verdict Failed
package rollout

import (
	"time"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// Input is the state of a rollout at one time.
type Input struct {
	Name string // of the rollout
	Spec fleetv1.NodeRolloutSpec
	// Generation of the spec.
	Generation int64
	Nodes      []Node // the chosen nodes, in any order
	Now        time.Time
	// Wrong explains why no node may get the content; "": it may.
	Wrong string
	// Before is the status of the last decision. Of it, only the failed nodes count.
	Before fleetv1.NodeRolloutStatus
}

// Node is a chosen node, as the API server knows it.
type Node struct {
	Name  string
	Ready bool
	// ReadySince is the time of the last change of Ready.
	ReadySince time.Time
	// Cordoned reports whether the node is unschedulable, by whomever.
	Cordoned bool
	// Left reports that the rollout has touched the node, and no rollout chooses it any longer.
	Left bool
	// Lease is the time at which the kubelet renewed the node's lease; zero: unknown. It matters
	// only while the node is checked.
	Lease time.Time
	// DrainRound is the end of the last round of the node's drain, by the controller that decides; zero: there
	// was none.
	DrainRound time.Time
	// State is the node's NodeState; nil: the node has none.
	State *fleetv1.NodeState
}

// Do is a kind of action.
type Do string

const (
	DoClaim   Do = "claim"   // record the order, not released
	DoDrain   Do = "drain"   // cordon, request evictions; release the node when no pod is left
	DoRelease Do = "release" // let the node begin
	DoConvict Do = "convict" // record a verdict, and uncordon the node if Uncordon is set
	DoReturn  Do = "return"  // order the previous binaries back, released
	DoLetGo   Do = "letGo"   // remove the claim and uncordon
)

// Action is the next action for one node.
type Action struct {
	Do       Do
	Node     string
	Order    fleetv1.Action  // of DoClaim
	Verdict  fleetv1.Verdict // of DoConvict
	Uncordon bool            // with DoConvict
	Draining bool            // with DoConvict: pods have not left; the reason lacks them
	Reason   string          // with DoClaim: why the node had failed before
}

// Decision is the result of Decide.
type Decision struct {
	Actions []Action
	// Check are the nodes whose lease decides; the caller reads these leases before the next decision.
	Check []string
	// Again is the time after which the decision may change although no object does; 0: never.
	Again  time.Duration
	Status fleetv1.NodeRolloutStatus // without conditions and generation
}
