package cluster

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Node is a Node object and its lease, as the API server has them.
type Node struct {
	Name    string    `json:"name"`
	Exists  bool      `json:"exists"` // the zero Node does not
	UID     string    `json:"uid,omitempty"`
	Created time.Time `json:"created,omitzero"`

	Ready      bool        `json:"ready"`
	Cordoned   bool        `json:"cordoned"`
	Conditions []Condition `json:"conditions,omitempty"`

	KubeletVersion string `json:"kubeletVersion,omitempty"` // v1.36.3
	OS             string `json:"os,omitempty"`             // windows
	OSImage        string `json:"osImage,omitempty"`        // Windows Server 2022 Datacenter
	KernelVersion  string `json:"kernelVersion,omitempty"`  // 10.0.20348.2700
	Runtime        string `json:"runtime,omitempty"`        // containerd://1.7.12
	MachineID      string `json:"machineID,omitempty"`
	SystemUUID     string `json:"systemUUID,omitempty"`
	BootID         string `json:"bootID,omitempty"`

	Addresses   []corev1.NodeAddress `json:"addresses,omitempty"`
	Labels      map[string]string    `json:"labels,omitempty"`
	Annotations map[string]string    `json:"annotations,omitempty"`
	Taints      []corev1.Taint       `json:"taints,omitempty"`
	Allocatable Resources            `json:"allocatable"`

	// LeaseRenewed is the kubelet's last sign of life, by the node's clock. Zero
	// where there is no lease.
	LeaseRenewed time.Time `json:"leaseRenewed,omitzero"`
}

// Condition is one of a node's conditions.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"` // True, False, Unknown
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Resources are what pods may use of a node.
type Resources struct {
	MilliCPU    int64 `json:"milliCPU"`
	MemoryBytes int64 `json:"memoryBytes"`
}

// Wanted is what AwaitNode waits for: all of it.
type Wanted struct {
	Registered  bool
	Ready       bool
	LeaseAfter  time.Time // a lease renewed after this, by the node's clock
	Allocatable bool      // CPU and memory for pods, more than none
	Labels      map[string]string
	Taints      []corev1.Taint
}

// Node reads a Node object and its lease. One that does not exist is no error:
// see Exists.
func (c *Cluster) Node(ctx context.Context, name string) (Node, error) {
	return Node{}, errors.ErrUnsupported
}

// AwaitNode waits until the node is as wanted, as long as ctx lasts, and returns
// it. It tells report each new state of what it waits for. The error of a wait
// in vain is a *NodeWaitError.
func (c *Cluster) AwaitNode(ctx context.Context, name string, want Wanted, report func(state string)) (Node, error) {
	return Node{}, errors.ErrUnsupported
}

// NodeWaitError: the node did not become as wanted in time.
type NodeWaitError struct {
	Name    string
	Missing []string // what of the wanted is not so
	Last    Node     // as last seen
	After   time.Duration
	Err     error
}

func (e *NodeWaitError) Error() string { return "" }
func (e *NodeWaitError) Unwrap() error { return e.Err }

// SetLabels gives a node these labels and leaves its others. It returns whether
// any was missing or different.
func (c *Cluster) SetLabels(ctx context.Context, name string, labels map[string]string) (bool, error) {
	return false, errors.ErrUnsupported
}

// SetTaints gives a node these taints and leaves its others. It returns whether
// any was missing or different.
func (c *Cluster) SetTaints(ctx context.Context, name string, taints []corev1.Taint) (bool, error) {
	return false, errors.ErrUnsupported
}

// KubeletMaySet is whether a kubelet may give its own node this label: as a
// flag, and past the API server's NodeRestriction. Others have to be set with
// SetLabels.
func KubeletMaySet(label string) bool { return true }

// DeleteNode removes a Node object. It returns whether there was one.
func (c *Cluster) DeleteNode(ctx context.Context, name string) (bool, error) {
	return false, errors.ErrUnsupported
}
