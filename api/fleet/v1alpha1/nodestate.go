package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeState connects the controller with one node, whose name it has. The controller writes the spec,
// and the program on the node writes the status. The Node owns it, so it ends with the Node.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=nst
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.spec.rollout`
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.spec.verdict`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Journal",type=string,JSONPath=`.status.journal`,priority=1
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.spec.since`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
type NodeState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeStateSpec   `json:"spec"`
	Status NodeStateStatus `json:"status,omitempty"`
}

// NodeStateSpec is the controller's order for the node, and its verdict. The node confirms the order with the
// NodeRollout before it carries it out.
type NodeStateSpec struct {
	// Rollout is the name of the rollout that has the node.
	Rollout string `json:"rollout"`
	// Hash of the content.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash"`
	// Action is the order: Apply brings the node to the content, RollBack restores the binaries before it.
	// +kubebuilder:validation:Enum=Apply;RollBack
	Action Action `json:"action"`
	// Released reports that the node may begin. Before that, it fetches the binaries, and then its pods are evicted.
	// +optional
	Released bool `json:"released,omitempty"`
	// Since is the time of the controller's last change of action, released or verdict.
	// +optional
	Since metav1.Time `json:"since,omitempty"`
	// Content is the wanted state of the node.
	Content Content `json:"content"`
	// Verdict is the end: Updated, Failed or RolledBack. Empty: not ended.
	// +optional
	// +kubebuilder:validation:Enum=Updated;Failed;RolledBack
	Verdict Verdict `json:"verdict,omitempty"`
	// Reason explains a verdict, or why the controller has ordered RollBack.
	// +optional
	Reason string `json:"reason,omitempty"`
	// RollbackGeneration is the generation of the rollout whose operation RollBack is the order. 0: the order
	// has another cause.
	// +optional
	RollbackGeneration int64 `json:"rollbackGeneration,omitempty"`
}

// Action is an order for a node.
type Action string

const (
	ActionApply    Action = "Apply"
	ActionRollBack Action = "RollBack"
)

// Verdict is the controller's conclusion about a node.
type Verdict string

const (
	VerdictUpdated    Verdict = "Updated"
	VerdictFailed     Verdict = "Failed"
	VerdictRolledBack Verdict = "RolledBack"
)

// NodeStateStatus is the node's report. Only the program on the node writes it.
type NodeStateStatus struct {
	// Hash and Action are those of the order that the report answers.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash,omitempty"`
	// +optional
	Action Action `json:"action,omitempty"`
	// Phase is Fetched, Working, Done, RolledBack, Failed or Refused. Fetched: the node has all binaries of an order
	// that is not released yet. RolledBack: the node tried the order and restored its previous binaries, or
	// was not changed. Failed: it could not do either. Refused: the order is not one of its NodeRollout, as the API
	// server has that now; the node has done nothing for it.
	// +optional
	// +kubebuilder:validation:Enum=Fetched;Working;Done;RolledBack;Failed;Refused
	Phase Phase `json:"phase,omitempty"`
	// Journal is the ID of the last transaction on the node.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Journal string `json:"journal,omitempty"`
	// Since is the time of the phase's begin, by the node's clock.
	// +optional
	Since metav1.MicroTime `json:"since,omitempty"`
	// Message explains the phase.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// Phase is the progress of an order on the node.
type Phase string

const (
	PhaseFetched    Phase = "Fetched"
	PhaseWorking    Phase = "Working"
	PhaseDone       Phase = "Done"
	PhaseRolledBack Phase = "RolledBack"
	PhaseFailed     Phase = "Failed"
	PhaseRefused    Phase = "Refused"
)

// NodeStateList is a list of nodes' states.
//
// +kubebuilder:object:root=true
type NodeStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeState `json:"items"`
}
