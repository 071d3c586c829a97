// Package v1alpha1 has the objects with which a cluster manages its Windows nodes, in the API group
// fleet.swdt.dev. A NodeRollout says what its nodes should run and how carefully they change. The
// controller keeps one small NodeState for each node that a rollout has touched: its spec is the
// controller's order, its status is the node's report.
//
//   - rollout.go: NodeRollout; binaries.go: the wanted content of a node, as in a node file
//   - nodestate.go: NodeState
//   - register.go: the names of the group
//
// The comments become the descriptions that `kubectl explain` prints.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.swdt.dev
package v1alpha1
