package smoke

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/maruel/natural"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

const (
	windows = "windows"
	linux   = "linux"
)

// nodes are the nodes that a run works with.
type nodes struct {
	windows []cluster.Node // the Windows nodes to test, in the order of their names
	linux   []cluster.Node // the Linux nodes that can run the server
	noLinux string         // the reason why linux is empty; valid only if linux is empty
}

// NoNodeError reports that no Windows node can be tested, or that the user has named a Windows node
// that does not exist.
type NoNodeError struct {
	Why    string
	Remedy string
}

func (e *NoNodeError) Error() string { return e.Why + "; " + e.Remedy }

// find returns the nodes that a run works with. The error is a *NoNodeError if none of the chosen
// Windows nodes is Ready, or if the user has named a Windows node that does not exist.
func find(ctx context.Context, c *cluster.Cluster, o Options) (nodes, error) {
	all, err := c.Nodes(ctx)
	if err != nil {
		return nodes{}, err
	}
	slices.SortFunc(all, func(a, b cluster.Node) int { return natural.Compare(a.Name, b.Name) })
	found := nodes{}
	var unfit, systems []string
	for _, n := range all {
		switch {
		case systemOf(n) == windows && o.chooses(n):
			found.windows = append(found.windows, n)
		case systemOf(n) == linux:
			if why := cannotServe(n); why != "" {
				unfit = append(unfit, n.Name+" "+why)
			} else {
				found.linux = append(found.linux, n)
			}
		}
		systems = append(systems, n.Name+" ("+systemOf(n)+")")
	}
	found.noLinux = "the cluster has no Linux node"
	if len(unfit) > 0 {
		found.noLinux = "no Linux node can run the server: " + strings.Join(unfit, ", ")
	}
	return found, found.fit(o, systems)
}

// fit returns a *NoNodeError if none of the chosen Windows nodes is Ready, or if the user has named
// a Windows node that does not exist. The parameter all lists each node with its system, for the
// error.
func (n nodes) fit(o Options, all []string) error {
	for _, name := range o.Nodes {
		if !slices.ContainsFunc(n.windows, func(w cluster.Node) bool { return w.Name == name }) {
			return &NoNodeError{
				Why: "the cluster has no Windows node " + ui.Printable(name) + ": its nodes are " +
					shortened(strings.Join(all, ", "), maxText),
				Remedy: "--node names Windows nodes of the cluster; the default is all of them",
			}
		}
	}
	if len(n.windows) == 0 && o.Selector != nil && !o.Selector.Empty() {
		return &NoNodeError{Why: "no Windows node of the cluster has the labels " + o.Selector.String(),
			Remedy: remedy.KubectlCommand("get", "nodes", "--show-labels") + " shows their labels"}
	}
	if len(n.windows) == 0 {
		return &NoNodeError{Why: "the cluster has no Windows node", Remedy: "`swdt join` adds one"}
	}
	var states []string
	for _, w := range n.windows {
		if w.Ready {
			return nil
		}
		states = append(states, w.Name+" is "+shortened(w.State(), maxText))
	}
	return &NoNodeError{Why: "no Windows node is Ready: " + strings.Join(states, ", "),
		Remedy: "`swdt network status` shows whether the pod network works, `swdt doctor` what is wrong on a node"}
}

func (o Options) chooses(n cluster.Node) bool {
	return (len(o.Nodes) == 0 || slices.Contains(o.Nodes, n.Name)) &&
		(o.Selector == nil || o.Selector.Matches(labels.Set(n.Labels)))
}

// systemOf returns the operating system of a node, by the label that the scheduler uses.
func systemOf(n cluster.Node) string { return n.Labels[corev1.LabelOSStable] }

// cannotServe returns the reason why a Linux node cannot run the server, or "".
func cannotServe(n cluster.Node) string {
	switch {
	case !n.Ready:
		return "is NotReady"
	case n.Cordoned:
		return "is cordoned"
	}
	for _, t := range n.Taints {
		// A node that has just become Ready still has the taint not-ready, for a moment.
		keeps := t.Effect != corev1.TaintEffectPreferNoSchedule && t.Key != corev1.TaintNodeNotReady
		if keeps && !slices.Contains(controlPlaneTaints(), t.Key) {
			return "has the taint " + t.ToString() + " (" +
				remedy.KubectlCommand("taint", "nodes", n.Name, t.Key+":"+string(t.Effect)+"-") + " removes it)"
		}
	}
	return ""
}

// controlPlaneTaints returns the keys of the taints that the server's pod tolerates: the only Linux
// node of a small cluster is often the control plane.
func controlPlaneTaints() []string {
	return []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
}

// tolerated returns the tolerations of the pod on a Windows node: for the taints that Windows nodes
// usually have, and for the taints of this node, since the pod tests the node and not the node's
// taints. The pod does not tolerate the taints with which Kubernetes marks a node that does not
// work.
func tolerated(n cluster.Node) []corev1.Toleration {
	all := []corev1.Toleration{{Key: "os", Operator: corev1.TolerationOpExists},
		{Key: corev1.LabelOSStable, Operator: corev1.TolerationOpExists}}
	for _, t := range n.Taints {
		known := slices.ContainsFunc(all, func(has corev1.Toleration) bool { return has.Key == t.Key })
		if !known && !strings.HasPrefix(t.Key, "node.kubernetes.io/") &&
			!strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/") {
			all = append(all, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpExists})
		}
	}
	return all
}

// unfit returns a *failure if the Node object shows that no pod can be scheduled on the node,
// because the node is cordoned or not Ready. Otherwise it returns nil.
func unfit(n cluster.Node) error {
	switch {
	case !n.Ready:
		return &failure{"the node is " + n.State(), "`swdt doctor` shows what is wrong on it"}
	case n.Cordoned:
		return &failure{"the node is cordoned",
			remedy.KubectlCommand("uncordon", n.Name) + " lets it run pods"}
	}
	return nil
}

// address returns the URL of the API server's Service in the cluster.
func address(ctx context.Context, c *cluster.Cluster) (string, error) {
	const name = "kubernetes"
	service, err := c.Clientset().CoreV1().Services(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", c.Failure("read Service "+name, cluster.Permission{Verb: "get", Resource: "services",
			Namespace: metav1.NamespaceDefault, Name: name}, err)
	}
	if len(service.Spec.Ports) == 0 || service.Spec.ClusterIP == "" {
		return "", errors.New("the Service default/kubernetes has no address; the API server makes the Service when it starts")
	}
	return "https://" + hostPort(service.Spec.ClusterIP, service.Spec.Ports[0].Port) + "/version", nil
}
