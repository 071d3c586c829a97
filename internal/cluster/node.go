package cluster

import (
	"context"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node is a Node object and its lease, as the API server returned them.
type Node struct {
	Name    string    `json:"name"`
	Exists  bool      `json:"exists"`
	UID     string    `json:"uid,omitempty"`
	Created time.Time `json:"created,omitzero"`

	Ready    bool `json:"ready"`
	Cordoned bool `json:"cordoned"`
	// CordonedByUs reports whether the node is cordoned and a Drain cordoned it.
	CordonedByUs bool        `json:"-"`
	Conditions   []Condition `json:"conditions,omitempty"`

	KubeletVersion string `json:"kubeletVersion,omitempty"` // v1.36.3
	OS             string `json:"os,omitempty"`             // windows
	OSImage        string `json:"osImage,omitempty"`        // such as Windows Server 2022 Datacenter
	KernelVersion  string `json:"kernelVersion,omitempty"`  // 10.0.20348.2849
	Runtime        string `json:"runtime,omitempty"`        // containerd://1.7.12
	MachineID      string `json:"machineID,omitempty"`
	SystemUUID     string `json:"systemUUID,omitempty"`
	BootID         string `json:"bootID,omitempty"`

	Addresses   []corev1.NodeAddress `json:"addresses,omitempty"`
	Labels      map[string]string    `json:"labels,omitempty"`
	Annotations map[string]string    `json:"annotations,omitempty"`
	Taints      []corev1.Taint       `json:"taints,omitempty"`
	Allocatable Resources            `json:"allocatable"`

	// LeaseRenewed is when the kubelet last renewed the lease, by the node's clock. Zero
	// if there is no lease.
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

// Resources are the resources of a node that pods may use.
type Resources struct {
	MilliCPU    int64 `json:"milliCPU"`
	MemoryBytes int64 `json:"memoryBytes"`
}

// Node reads a Node object and its lease. A missing Node is not an error: see Exists.
func (c *Cluster) Node(ctx context.Context, name string) (Node, error) {
	doing := "read node " + name
	object, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Node{Name: name}, nil
	}
	if err != nil {
		return Node{}, c.nodeError(doing, "get", name, err)
	}
	n := nodeOf(object)
	lease, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return Node{}, c.fail(doing+"'s lease", leasePermission(), err)
	}
	if err == nil && lease.Spec.RenewTime != nil {
		n.LeaseRenewed = lease.Spec.RenewTime.Time
	}
	return n, nil
}

// Nodes returns all nodes of the cluster, without their leases.
func (c *Cluster) Nodes(ctx context.Context) (all []Node, err error) {
	err = Pages(ctx, c.client.CoreV1().Nodes().List, func(page *corev1.NodeList) {
		for i := range page.Items {
			all = append(all, nodeOf(&page.Items[i]))
		}
	})
	return all, c.nodeError("list the nodes", "list", "", err)
}

func leasePermission() Permission {
	return Permission{Verb: "get", Group: coordinationv1.GroupName, Resource: "leases",
		Namespace: corev1.NamespaceNodeLease}
}

func nodeOf(o *corev1.Node) Node {
	n := Node{
		Name: o.Name, Exists: true, UID: string(o.UID), Created: o.CreationTimestamp.Time,
		Cordoned:       o.Spec.Unschedulable,
		CordonedByUs:   cordonedByUs(o),
		KubeletVersion: o.Status.NodeInfo.KubeletVersion,
		OS:             o.Status.NodeInfo.OperatingSystem,
		OSImage:        o.Status.NodeInfo.OSImage,
		KernelVersion:  o.Status.NodeInfo.KernelVersion,
		Runtime:        o.Status.NodeInfo.ContainerRuntimeVersion,
		MachineID:      o.Status.NodeInfo.MachineID,
		SystemUUID:     o.Status.NodeInfo.SystemUUID,
		BootID:         o.Status.NodeInfo.BootID,
		Addresses:      o.Status.Addresses, Labels: o.Labels, Annotations: o.Annotations, Taints: o.Spec.Taints,
		Allocatable: Resources{
			MilliCPU:    o.Status.Allocatable.Cpu().MilliValue(),
			MemoryBytes: o.Status.Allocatable.Memory().Value(),
		},
	}
	for _, c := range o.Status.Conditions {
		n.Conditions = append(n.Conditions, Condition{
			Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message,
			Since: c.LastTransitionTime.Time,
		})
		if c.Type == corev1.NodeReady {
			n.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return n
}

// Condition returns one of the node's conditions by its type.
func (n Node) Condition(kind string) (Condition, bool) {
	at := slices.IndexFunc(n.Conditions, func(c Condition) bool { return c.Type == kind })
	if at < 0 {
		return Condition{}, false
	}
	return n.Conditions[at], true
}

// State returns the node's state in one line: Ready, or the reason why it is not ready;
// whether it is cordoned; and other conditions that are true, such as a pressure.
func (n Node) State() string {
	if !n.Exists {
		return "not registered"
	}
	state := []string{n.readiness()}
	if n.Cordoned {
		state = append(state, "cordoned")
	}
	for _, c := range n.Conditions {
		if c.Type != string(corev1.NodeReady) && c.Status == string(corev1.ConditionTrue) {
			state = append(state, c.Type+because(c))
		}
	}
	return strings.Join(state, "; ")
}

func (n Node) readiness() string {
	ready, ok := n.Condition(string(corev1.NodeReady))
	switch {
	case !ok:
		return "registered, but its kubelet has not reported yet"
	case n.Ready:
		return "Ready"
	}
	return "NotReady" + because(ready)
}

// because returns a condition's reason and message. It omits the reason or the message if the
// condition lacks it.
func because(c Condition) string {
	s := ""
	if c.Reason != "" {
		s = " (" + c.Reason + ")"
	}
	if c.Message != "" {
		s += ": " + c.Message
	}
	return s
}
