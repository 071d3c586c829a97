// Package installation applies the objects of a fleet's installation to a cluster, and removes them: the
// kinds, the controller, and the program on the nodes, with the rules that limit both.
package installation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Options configure an installation.
type Options struct {
	Settings manifests.Settings
	DryRun   bool
	Force    bool // take the fields that other managers own
}

// Run applies the objects by server-side apply, and changes nothing that is as it should be. A dry run
// has the API server try each object without storing it.
func Run(ctx context.Context, c *cluster.Cluster, o Options, r ui.Reporter) ([]plan.StepResult, error) {
	var err error
	if o.Settings.APIPorts, err = apiPorts(ctx, c); err != nil {
		return nil, err
	}
	objects, err := manifests.Objects(o.Settings)
	if err != nil {
		return nil, err
	}
	server := cni.NewServer(c)
	server.Take = o.taking()
	var steps []plan.Step
	for _, object := range objects {
		steps = append(steps, &step{server: server, object: object, force: o.Force})
	}
	return plan.Run(ctx, steps, plan.Options{DryRun: o.DryRun, Ordered: true, Elsewhere: "the cluster"}, r)
}

// apiPorts returns the TCP ports of the API server's endpoints, such as 8443 of minikube and 16443 of MicroK8s: a
// policy counts behind the Service, where its own port is not seen any more.
func apiPorts(ctx context.Context, c *cluster.Cluster) (ports []int32, err error) {
	list, err := c.Clientset().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return nil, c.Failure("read the endpoints of Service kubernetes", cluster.Permission{Verb: "list",
			Group: discoveryv1.GroupName, Resource: "endpointslices", Namespace: metav1.NamespaceDefault}, err)
	}
	for _, slice := range list.Items {
		for _, p := range slice.Ports {
			if p.Port != nil && !slices.Contains(ports, *p.Port) {
				ports = append(ports, *p.Port)
			}
		}
	}
	slices.Sort(ports)
	return ports, nil
}

// NoNodeError is returned if a cluster has no node for the controller.
type NoNodeError struct{ Selector string }

func (e *NoNodeError) Error() string {
	if e.Selector == manifests.ControlPlane {
		return "the cluster shows no node of its control plane (label " + e.Selector + "), where the controller would run. " +
			"Root of the controller's node can drain all Windows nodes, and start each rollout: choose nodes of that trust with " +
			"--controller-nodes SELECTOR, or say --any-linux-node"
	}
	return fmt.Sprintf("no Linux node of the cluster has the labels %s of --controller-nodes", e.Selector)
}

// CheckController returns a *NoNodeError if the settings choose nodes for the controller that the cluster lacks.
func CheckController(ctx context.Context, c *cluster.Cluster, s manifests.Settings) error {
	selector := cmp.Or(s.ControllerNodes, manifests.ControlPlane)
	if selector == manifests.LinuxNodes {
		return nil
	}
	nodes, err := c.Clientset().CoreV1().Nodes().List(ctx, metav1.ListOptions{
		LabelSelector: selector + "," + manifests.LinuxNodes, Limit: 1})
	if err != nil {
		return c.Failure("list the nodes for the controller", cluster.Permission{Verb: "list", Resource: "nodes"}, err)
	}
	if len(nodes.Items) == 0 {
		return &NoNodeError{selector}
	}
	return nil
}

// taking returns the arguments of the same installation that takes fields of other managers.
func (o Options) taking() []string {
	arguments := []string{"fleet", "install"}
	for flag, value := range o.Settings.Flags() {
		arguments = append(arguments, flag, value)
	}
	return append(arguments, "--force")
}

// step applies one object.
type step struct {
	server *cni.Server
	object *unstructured.Unstructured
	force  bool
}

func (s *step) Name() string { return cni.RefOf(s.object).String() }

func (s *step) Plan(ctx context.Context) (plan.Change, error) {
	d, err := s.server.Compare(ctx, s.object, s.force)
	switch {
	case err != nil:
		return plan.Change{}, err
	case d.Create:
		return plan.Change{Needed: true, Summary: "create"}, nil
	case d.Needed():
		return plan.Change{Needed: true, Summary: fmt.Sprintf("change %d fields", len(d.Fields)), Detail: d.String()}, nil
	}
	return plan.Change{}, nil
}

func (s *step) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	d, err := s.server.Compare(ctx, s.object, s.force)
	if err != nil || !d.Needed() {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, s.server.Apply(ctx, d)
}
