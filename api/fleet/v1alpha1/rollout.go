package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodeRollout brings the Windows nodes that its selector chooses to one state, a few at a time, and
// stops when nodes fail. If the selectors of two rollouts choose the same node, the older rollout has it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=nro
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Working",type=integer,JSONPath=`.status.working`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters"
type NodeRollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeRolloutSpec   `json:"spec"`
	Status NodeRolloutStatus `json:"status,omitempty"`
}

// NodeRolloutSpec says which nodes get what, and how carefully.
type NodeRolloutSpec struct {
	// Selector chooses among the Windows nodes by their labels. An empty selector chooses all of them.
	// +kubebuilder:validation:XValidation:fieldPath=".matchExpressions",rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="operator must be In or NotIn with values, or Exists or DoesNotExist without"
	Selector metav1.LabelSelector `json:"selector"`
	// Content is the state that each node gets.
	Content Content `json:"content"`

	// MaxUnavailable is the number, or the percentage, of nodes that may be unavailable at once. Nodes
	// that this rollout changes count, and so do the other nodes that are cordoned or not Ready. A
	// percentage is rounded down, but at least 1. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1",message="maxUnavailable must be at least 1, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// FailureLimit is the number of failed nodes at which the rollout stops. Until the first node has
	// succeeded, the rollout touches no more nodes than this. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	FailureLimit int32 `json:"failureLimit,omitempty"`
	// OnFailure is the action for a node that runs the new binaries, but does not become Ready with
	// them: rollback restores the previous binaries on it; pause leaves it, cordoned, for a person
	// to look at, and stops the rollout. A node whose services do not start has always rolled itself back.
	// +optional
	// +kubebuilder:default=rollback
	// +kubebuilder:validation:Enum=rollback;pause
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// AcceptedFailures are those after which a person has let the rollout go on: with onFailure: pause, it stops
	// when one more node has failed. `swdt fleet resume` sets them.
	// +optional
	AcceptedFailures *AcceptedFailures `json:"acceptedFailures,omitempty"`
	// Canary are the first steps of the rollout. After the last of them, all nodes follow.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	Canary []CanaryStep `json:"canary,omitempty"`
	// Window limits the times at which the rollout touches further nodes. Nodes that it has touched
	// are always brought to an end. Unset: any time.
	// +optional
	Window *Window `json:"window,omitempty"`
	// Drain evicts the pods of a node before the node changes. Unset: pods stay.
	// +optional
	Drain *Drain `json:"drain,omitempty"`
	// Health says when a changed node counts as healthy.
	// +optional
	Health NodeHealth `json:"health,omitempty"`
	// ProgressDeadline is how long a node may take to fetch the binaries, and then for the change itself. Default 15m.
	// +optional
	ProgressDeadline Duration `json:"progressDeadline,omitempty"`

	// Paused keeps the rollout from touching further nodes. Nodes refuse orders of it for which they had not fetched
	// the binaries before.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Operation is Roll (default), Abort or RollBack. Abort touches no further node and lets go of
	// nodes that have not begun to change. RollBack restores the previous binaries on all nodes that
	// have the present content, failed ones included, within maxUnavailable; what setup has changed stays.
	// A change of the spec makes it try once more the nodes on which it has failed before it began.
	// +optional
	// +kubebuilder:default=Roll
	// +kubebuilder:validation:Enum=Roll;Abort;RollBack
	Operation Operation `json:"operation,omitempty"`
}

// OnFailure is the action for a node that does not become healthy.
type OnFailure string

const (
	OnFailureRollback OnFailure = "rollback"
	OnFailurePause    OnFailure = "pause"
)

// AcceptedFailures are failures with one content. With another content, none is accepted.
type AcceptedFailures struct {
	// Hash of the content, as in the status.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash"`
	// Nodes is the number of failed nodes.
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`
}

// Operation is the direction of a rollout.
type Operation string

const (
	OperationRoll     Operation = "Roll"
	OperationAbort    Operation = "Abort"
	OperationRollBack Operation = "RollBack"
)

// CanaryStep is a number of nodes, after which the rollout pauses.
type CanaryStep struct {
	// Nodes is the number, or the percentage, of nodes that have the content at the end of this step,
	// those of the earlier steps included.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1",message="nodes must be at least 1, or a percentage from 1% to 100%"
	Nodes intstr.IntOrString `json:"nodes"`
	// Pause is the time from the success of the step's last node to the next step. Default: none.
	// +optional
	Pause Duration `json:"pause,omitempty"`
}

// Window is a span of time that repeats on days of the week.
type Window struct {
	// Days on which the window begins. Default: all days.
	// +optional
	// +kubebuilder:validation:MaxItems=7
	Days []Day `json:"days,omitempty"`
	// Start is the time at which the window begins, such as 22:00.
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`
	// End is the time at which the window ends. If it is not after start, it is a time of the next day.
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	End string `json:"end"`
	// TimeZone is the name of a time zone, such as Europe/Berlin. Default UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// Day is a day of the week.
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Day string

// Drain has the options of evicting a node's pods, as of kubectl drain. It respects
// PodDisruptionBudgets, and leaves the pods of DaemonSets.
type Drain struct {
	// Timeout after which the node counts as failed, unchanged. Default 5m.
	// +optional
	Timeout Duration `json:"timeout,omitempty"`
	// GracePeriod of every pod. Default: each pod's own.
	// +optional
	GracePeriod Duration `json:"gracePeriod,omitempty"`
	// DeleteEmptyDir evicts pods even if they lose emptyDir volumes.
	// +optional
	DeleteEmptyDir bool `json:"deleteEmptyDir,omitempty"`
	// Force evicts pods even if no controller would make them again.
	// +optional
	Force bool `json:"force,omitempty"`
}

// NodeHealth says when a changed node counts as healthy: it must be Ready for the whole settle time, and its kubelet
// must have renewed the node's lease since the change, and again after the settle time.
type NodeHealth struct {
	// Settle is how long the node must stay Ready. It follows the timeout, so it may be longer. Default 10s.
	// +optional
	Settle Duration `json:"settle,omitempty"`
	// Timeout for becoming Ready, with a lease that was renewed since the change. Default 5m.
	// +optional
	Timeout Duration `json:"timeout,omitempty"`
}

// FailedNode is a node that failed, perhaps a while ago.
type FailedNode struct {
	Name string `json:"name"`
	// StateUID is the UID of its NodeState, so that a new node of the same name is another one.
	StateUID types.UID `json:"stateUID"`
}

// NodeRolloutStatus is the state of a rollout.
type NodeRolloutStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Hash of the content, as the nodes' NodeStates have it.
	// +optional
	Hash string `json:"hash,omitempty"`
	// Nodes is the number of chosen nodes.
	// +optional
	// +kubebuilder:default=0
	Nodes int32 `json:"nodes"`
	// Updated nodes have the content, and are healthy.
	// +optional
	// +kubebuilder:default=0
	Updated int32 `json:"updated"`
	// Working nodes are changing now.
	// +optional
	// +kubebuilder:default=0
	Working int32 `json:"working"`
	// Failed nodes did not accept the content. They run their previous binaries, unless their
	// NodeState says otherwise.
	// +optional
	// +kubebuilder:default=0
	Failed int32 `json:"failed"`
	// FailedNodes are the nodes that failed with this content, the earliest first. A node that was deleted after
	// its failure stays in the list, and counts for FailureLimit. The list ends at FailureLimit.
	// +optional
	// +listType=atomic
	FailedNodes []FailedNode `json:"failedNodes,omitempty"`
	// RolledBack nodes were taken back by the operation RollBack.
	// +optional
	// +kubebuilder:default=0
	RolledBack int32 `json:"rolledBack"`
	// Unavailable nodes are not changed by this rollout, and are cordoned or not Ready.
	// +optional
	// +kubebuilder:default=0
	Unavailable int32 `json:"unavailable"`
	// State is a word for people: Rolling, Waiting, Paused, Stopped, Aborted, RollingBack, RolledBack
	// or Complete.
	// +optional
	State string `json:"state,omitempty"`
	// Message explains the state.
	// +optional
	Message string `json:"message,omitempty"`
	// Conditions are Valid, Progressing, Available and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The types of a rollout's conditions. Valid is false while the spec breaks a rule that the schema cannot express;
// its message names the field, and no node is touched. Degraded is true after a node has failed, Available while
// all nodes have the content, Progressing while further nodes will be touched without a person's help.
const (
	Valid       = "Valid"
	Progressing = "Progressing"
	Available   = "Available"
	Degraded    = "Degraded"
)

// NodeRolloutList is a list of rollouts.
//
// +kubebuilder:object:root=true
type NodeRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeRollout `json:"items"`
}
