package overview

import (
	"cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Report is the state of a cluster and of its nodes.
type Report struct {
	Cluster kindcluster.Report `json:"cluster"`
	Network Network            `json:"network"`
	Nodes   []Node             `json:"nodes"`
}

// Network is the state of the pod network.
type Network struct {
	// Outcome has the name of the network; the result is ok, or failed if the state is unknown.
	fleet.Outcome
	Wanted string `json:"wanted"` // the network that the cluster's document names
	podnetwork.Status
}

// name returns the name of the network that the cluster has, or else of the wanted one.
func (n Network) name() string { return cmp.Or(n.Network, n.Wanted) }

// Node is the state of one node. If swdt cannot connect to the node, its result is failed.
type Node struct {
	push.NodeStatus
	// Machine is the node's VM; null if the node's file describes no VM.
	Machine    *vm.Report `json:"machine"`
	Kubernetes Kubernetes `json:"kubernetes"`
}

// Kubernetes is the state of a node's Node object.
type Kubernetes struct {
	Node       string `json:"node"` // the name of the Node object; "" if it is unknown
	Registered bool   `json:"registered"`
	Ready      bool   `json:"ready"`
	// State is Ready, or why the node is not Ready. It is "" if there is no Node object and the node's file
	// names no version of Kubernetes, so that swdt does not join the node.
	State          string `json:"state"`
	KubeletVersion string `json:"kubeletVersion"`
	Error          string `json:"error"` // why the state is unknown; "" if it is known
}

// Names returns the cluster and the nodes for -o name.
func (r Report) Names() []string {
	names := []string{"cluster/" + r.Cluster.Name}
	for _, n := range r.Nodes {
		names = append(names, "node/"+n.Name)
	}
	return names
}

// Failed reports whether the pod network is known not to work, or a node is known not to be Ready. A
// pod network other than the one that the document names counts as not working. If the document
// leaves the pod network to other tools, Failed ignores a missing network.
func (r Report) Failed() bool {
	if network := r.Network; network.Result == fleet.OK && !network.worksWithoutSwdt() &&
		(!network.installed() || network.Status.Failed()) {
		return true
	}
	for _, n := range r.Nodes {
		if n.Kubernetes.State != "" && !n.Kubernetes.Ready {
			return true
		}
	}
	return false
}

// installed reports whether the network is the wanted one. If the document names no network, every
// network is.
func (n Network) installed() bool { return n.Wanted == v1alpha1.NoPlugin || n.Wanted == n.Network }
