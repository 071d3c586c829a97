// Package overview reports the state of a whole cluster: its control plane, its pod network, and each
// of its nodes, with the node's VM, Windows services and Node object. It changes nothing.
//
//   - overview.go: Look, which asks all parts side by side
//   - report.go: the report; text.go: the report for people
//
// Look uses the code of swdt cluster status, network status, vm list and status. A part that cannot be
// reached does not hide the others: the report says why the state of this part is unknown.
package overview

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/existing"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Options are the inputs of Look besides the documents.
type Options struct {
	// Clusters opens the clusters of kind. Look does not call it for an existing control plane.
	Clusters func(context.Context) (*kindcluster.Clusters, error)
	Machines *vm.Machines
	// OnNodes connects to all nodes, and calls the function for each.
	OnNodes func(context.Context, OfNode) []fleet.Result[Found]
	Status  push.StatusOptions
}

// OfNode returns what a connected node reports about itself.
type OfNode func(context.Context, *node.Node, config.Document, ui.Reporter) (Found, error)

// Found is the state that a connected node reports.
type Found struct {
	Status push.NodeStatus
	Object string // the name of the node's Node object
}

// Look returns the state of the cluster and of the nodes. If a part's state is unknown, the error is an
// *UnknownError with all such parts, and the report has the other parts.
func Look(ctx context.Context, doc config.ClusterDocument, documents []config.Document, o Options) (Report, error) {
	var (
		asked    sync.WaitGroup
		control  controlPlane
		machines map[string]vm.Report
		nodes    []fleet.Result[Found]
		noVMs    error
	)
	asked.Go(func() { control = lookAtCluster(ctx, doc, o) })
	asked.Go(func() { machines, noVMs = lookAtMachines(ctx, documents, o) })
	asked.Go(func() {
		if len(documents) > 0 {
			nodes = o.OnNodes(ctx, o.ofNode)
		}
	})
	asked.Wait()

	report := Report{Cluster: control.report, Network: control.network, Nodes: []Node{}}
	unknown := &UnknownError{}
	add := func(name string, err error) {
		if err != nil {
			unknown.Parts = append(unknown.Parts, fleet.Failure{Name: name, Err: err})
		}
	}
	add("control plane", control.err)
	add("pod network", control.networkErr)
	if control.err == nil { // the reason why the Nodes are unknown, too
		add("Nodes of the cluster", control.objectsErr)
	}
	add("VMs", noVMs)
	statuses := push.NewStatusReport(statusesOf(nodes))
	for i, result := range nodes {
		add(result.Name(), result.Err)
		one := Node{NodeStatus: statuses.Nodes[i], Kubernetes: control.object(result)}
		if machine, ok := machines[result.Name()]; ok {
			one.Machine = &machine
		}
		report.Nodes = append(report.Nodes, one)
	}
	if len(unknown.Parts) == 0 {
		return report, nil
	}
	return report, unknown
}

// UnknownError lists the parts whose state is unknown, with the reasons.
type UnknownError struct{ Parts []fleet.Failure }

func (e *UnknownError) Error() string {
	if len(e.Parts) == 1 {
		return e.Parts[0].String()
	}
	text := fmt.Sprintf("the state of %d parts is unknown:", len(e.Parts))
	for _, part := range e.Parts {
		text += "\n  " + strings.ReplaceAll(part.String(), "\n", "\n    ")
	}
	return text
}

// statusesOf returns the parts of the results that swdt status prints.
func statusesOf(nodes []fleet.Result[Found]) (all []fleet.Result[push.NodeStatus]) {
	for _, n := range nodes {
		all = append(all, fleet.Result[push.NodeStatus]{Document: n.Document, Value: n.Value.Status, Err: n.Err})
	}
	return all
}

func (o Options) ofNode(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (found Found,
	err error) {
	if found.Status, err = push.Status(ctx, n, doc, o.Status, r); err != nil {
		return found, err
	}
	found.Object, err = n.ObjectName(ctx, doc.Node.Spec.Kubernetes.Join)
	return found, err
}

// lookAtMachines returns the VMs of the documents. The keys are the VMs' names.
func lookAtMachines(ctx context.Context, documents []config.Document, o Options) (map[string]vm.Report, error) {
	var names []string
	for _, document := range documents {
		if document.Node.Spec.Machine != nil {
			names = append(names, document.Node.Metadata.Name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	list, err := o.Machines.List(ctx, names...)
	all := map[string]vm.Report{}
	for _, machine := range list {
		all[machine.Name] = machine
	}
	return all, err
}

// controlPlane is the state of the control plane, and the facts that its API server returned.
type controlPlane struct {
	report     kindcluster.Report
	err        error // why the control plane cannot be reached; nil if it can
	network    Network
	networkErr error // why the network is unknown although the control plane answers; nil if it is known
	objects    []cluster.Node
	objectsErr error // why the Node objects are unknown; nil if they are known
}

func lookAtCluster(ctx context.Context, doc config.ClusterDocument, o Options) (found controlPlane) {
	opened, err := open(ctx, doc, o)
	found.report, found.err = opened.Report, err
	name := doc.Cluster.Metadata.Name
	found.report.Outcome = fleet.NewOutcome(name, fleet.OK, err)
	found.network.Wanted = doc.Cluster.Spec.Network.Plugin
	if err != nil {
		found.objectsErr = fmt.Errorf("cluster %s could not be asked", name)
		found.network.Outcome = fleet.NewOutcome(found.network.Wanted, fleet.OK, found.objectsErr)
		return found
	}
	var asked sync.WaitGroup
	asked.Go(func() { found.objects, found.objectsErr = opened.API.Nodes(ctx) })
	asked.Go(func() {
		found.network.Status, found.networkErr = podnetwork.Look(ctx, opened.API, podnetwork.Options{}, ui.Discard{})
	})
	asked.Wait()
	found.network.Outcome = fleet.NewOutcome(found.network.name(), fleet.OK, found.networkErr)
	return found
}

// open returns the state of the control plane, and the access to it.
func open(ctx context.Context, doc config.ClusterDocument, o Options) (kindcluster.Opened, error) {
	if doc.Cluster.Spec.ControlPlane.Existing != nil {
		return existing.Status(ctx, doc)
	}
	clusters, err := o.Clusters(ctx)
	if err != nil {
		return kindcluster.Opened{}, err
	}
	return clusters.Compare(ctx, doc)
}

// object returns the state of a node's Node object.
func (c controlPlane) object(of fleet.Result[Found]) Kubernetes {
	state := Kubernetes{Node: of.Value.Object}
	if state.Node == "" {
		state.Node = of.Document.Node.Spec.Kubernetes.Join.NodeName
	}
	joins := of.Document.Node.Spec.Kubernetes.Version != "" // swdt up joins it
	switch {
	case c.objectsErr != nil:
		state.Error = c.objectsErr.Error()
		return state
	case state.Node == "":
		state.Error = "the node could not be asked for the name of its Node object"
		return state
	}
	at := slices.IndexFunc(c.objects, func(n cluster.Node) bool { return n.Name == state.Node })
	object := cluster.Node{Name: state.Node}
	if at >= 0 {
		object = c.objects[at]
	} else if !joins {
		return state
	}
	state.Registered, state.Ready, state.State = object.Exists, object.Ready, object.State()
	state.KubeletVersion = object.KubeletVersion
	return state
}

// worksWithoutSwdt reports whether the document leaves the pod network to other tools.
func (n Network) worksWithoutSwdt() bool { return n.Wanted == v1alpha1.NoPlugin && n.Network == "" }
