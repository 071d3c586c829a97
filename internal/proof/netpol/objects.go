package netpol

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/maruel/natural"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/node/viapod"
	"github.com/swdt-dev/swdt/internal/proof/probebin"
	"github.com/swdt-dev/swdt/internal/proof/probepod"
)

const (
	windows = "windows"
	// privileged is the first port that needs no right on Linux, unless a sysctl says otherwise.
	privileged, portSysctl = 1024, "net.ipv4.ip_unprivileged_port_start"
	// prefix begins the name of each namespace that a run makes.
	prefix = "swdt-netpol-"
	// maxNodeName is the length of a node's name up to which it is the name of its pod.
	maxNodeName = 60
)

// NoNodeError reports that no node can run the pods.
type NoNodeError struct{ Why []string }

func (e *NoNodeError) Error() string {
	if len(e.Why) == 0 {
		return "the cluster has no node; `swdt join` adds one"
	}
	return "no node of the cluster can run the pods: " + strings.Join(e.Why, "; ")
}

// nodesFor returns the nodes for the pods: Linux and Windows by turns, and control planes only if there is
// no other Linux node.
func nodesFor(ctx context.Context, c *cluster.Cluster) ([]cluster.Node, error) {
	all, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b cluster.Node) int { return natural.Compare(a.Name, b.Name) })
	var onWindows, onLinux, control []cluster.Node
	none := &NoNodeError{}
	for _, n := range all {
		switch why := smoke.CannotRun(n); {
		case why != "":
			none.Why = append(none.Why, n.Name+": "+probepod.Shortened(why))
		case !slices.Contains(probebin.Targets(), systemOf(n)+"/"+processorOf(n)):
			none.Why = append(none.Why, fmt.Sprintf("%s: swdt has probes for %s, and none for %s", n.Name,
				strings.Join(probebin.Targets(), ", "), probepod.Shortened(systemOf(n)+"/"+processorOf(n))))
		case systemOf(n) == windows:
			onWindows = append(onWindows, n)
		case smoke.IsControlPlane(n):
			control = append(control, n)
		default:
			onLinux = append(onLinux, n)
		}
	}
	if len(onLinux) == 0 {
		onLinux = control
	}
	var turns []cluster.Node
	for i := range max(len(onLinux), len(onWindows)) {
		turns = append(turns, onLinux[min(i, len(onLinux)):min(i+1, len(onLinux))]...)
		turns = append(turns, onWindows[min(i, len(onWindows)):min(i+1, len(onWindows))]...)
	}
	if len(turns) == 0 {
		return nil, none
	}
	return turns, nil
}

func systemOf(n cluster.Node) string { return n.Labels[corev1.LabelOSStable] }

// processorOf returns a node's processor, such as amd64, by its label.
func processorOf(n cluster.Node) string { return cmp.Or(n.Labels[corev1.LabelArchStable], "amd64") }

// placed returns the model with names of new namespaces, a node for each pod and, if they are wanted, the nodes.
func (w *run) placed(nodes []cluster.Node, labels map[string]string) Model {
	for _, n := range nodes {
		w.nodes[n.Name] = n
	}
	m := w.Model.placed(nodes, labels)
	if w.Options.Nodes {
		m, w.notes = m.withNodes(nodes, labels)
	}
	return m
}

// placed returns the model with names of new namespaces and a node for each pod.
func (m Model) placed(nodes []cluster.Node, labels map[string]string) Model {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	m.Namespaces, m.Pods = slices.Clone(m.Namespaces), slices.Clone(m.Pods)
	for i := range m.Namespaces {
		n := &m.Namespaces[i]
		n.Real = fmt.Sprintf("%s%s-%d", prefix, hex.EncodeToString(random), i+1)
		all := maps.Clone(labels)
		maps.Copy(all, n.Labels)
		n.Labels = all
		n.Labels[metadataName] = n.Real
		n.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	}
	for i := range m.Pods {
		node := nodes[i%len(nodes)]
		m.Pods[i].Node, m.Pods[i].System = node.Name, systemOf(node)
	}
	return m
}

// withNodes returns the model with a pod for each node, which uses the network of the node, in a namespace of their
// own, for which there are no policies. The notes say which nodes are left out.
func (m Model) withNodes(nodes []cluster.Node, labels map[string]string) (Model, []string) {
	name := "node"
	for _, taken := m.namespace(name); taken; _, taken = m.namespace(name) {
		name += "-"
	}
	hosts := Model{Namespaces: []Namespace{{Name: name, Host: true}}}.placed(nodes, labels).Namespaces[0]
	hosts.Labels["pod-security.kubernetes.io/enforce"] = "privileged"
	m.Namespaces = append(m.Namespaces, hosts)
	notes := []string{}
	for i, n := range nodes {
		if why := noHostProbe(n); why != "" {
			notes = append(notes, "node "+n.Name+" ("+why+")")
			continue
		}
		short := n.Name
		if len(short) > maxNodeName {
			short = fmt.Sprintf("node-%d", i+1)
		}
		m.Pods = append(m.Pods, Pod{Namespace: name, Short: short, Node: n.Name, System: systemOf(n), Host: true})
	}
	return m, notes
}

// noHostProbe returns why the probe does not run in a HostProcess container of a node; "" if it does.
func noHostProbe(n cluster.Node) string {
	switch {
	case systemOf(n) != windows:
		return ""
	case strings.HasPrefix(n.Runtime, "containerd://1.6."):
		return "a HostProcess container has no volumes with containerd 1.6"
	case strings.HasPrefix(n.KernelVersion, withoutBindFilter):
		return "Windows Server 2019 has no bind filter, with which a HostProcess container has its volumes"
	}
	return ""
}

// withoutBindFilter begins the version of Windows Server 2019, which has no bindfltapi.dll; see hcsshim,
// internal/jobcontainers/jobcontainer.go.
const withoutBindFilter = "10.0.17763"

// useNetworkOfNode lets a pod use the network of its node.
func useNetworkOfNode(pod *corev1.Pod, system string) {
	pod.Spec.HostNetwork = true
	if system != windows {
		return
	}
	yes, user := true, `NT AUTHORITY\LOCAL SERVICE` // the one of Windows' accounts with the fewest rights
	options := &corev1.WindowsSecurityContextOptions{HostProcess: &yes, RunAsUserName: &user}
	pod.Spec.SecurityContext.WindowsOptions = options
	// The entry point of agnhost's image has no extension, and no Windows starts it in a HostProcess container
	// (kubernetes/kubernetes#112651).
	pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args = viapod.WaitCommand(hostSeconds), nil
}

// hostSeconds is the longest life of a pod that uses the network of its Windows node, in seconds.
const hostSeconds = 24 * 60 * 60

// place returns where the pod has the probe.
func (p Pod) place() probepod.Place { return probepod.PlaceOf(p.System, p.Host) }

// makeNamespaces makes the namespaces with their ServiceAccounts.
func (w *run) makeNamespaces(ctx context.Context) error {
	for _, n := range w.model.Namespaces {
		labels := maps.Clone(n.Labels)
		delete(labels, metadataName) // which the API server adds itself
		if err := w.record.MakeNamespace(ctx, w.c, n.Real, labels); err != nil {
			return err
		}
		_, err := w.c.Clientset().CoreV1().ServiceAccounts(n.Real).Create(ctx, smoke.NewAccount(n.Real), metav1.CreateOptions{})
		if err != nil {
			return w.refused("make ServiceAccount "+smoke.Account, "create", "serviceaccounts", n.Real, err)
		}
	}
	return nil
}

func (w *run) refused(doing, verb, resource, namespace string, err error) error {
	group, name, ok := strings.Cut(resource, "/")
	p := cluster.Permission{Verb: verb, Resource: resource, Namespace: namespace}
	if ok {
		p.Group, p.Resource = group, name
	}
	return w.c.Failure(doing+" in namespace "+namespace, p, err)
}

// object returns the pod of a model's pod on its node.
func (w *run) object(p Pod, node cluster.Node) *corev1.Pod {
	n, _ := w.model.namespace(p.Namespace)
	image := w.LinuxImage
	if p.System == windows {
		image = w.Image
	}
	pod := smoke.NewPod(n.Real, p.Short, image, node, "pause")
	pod.Labels = maps.Clone(p.Labels) // and no others, since policies select by them
	container := &pod.Spec.Containers[0]
	probepod.Mount(pod, p.place())
	if p.Host {
		useNetworkOfNode(pod, p.System)
		return pod // without ports, which would keep it off a node that has one of them in use
	}
	for _, port := range w.model.Ports {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: port.Name, ContainerPort: port.Number,
			Protocol: port.Protocol})
		if port.Number < privileged && p.System != windows {
			pod.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: portSysctl, Value: "0"}}
		}
	}
	return pod
}

// apply makes the policies.
func (w *run) apply(ctx context.Context, policies []networkingv1.NetworkPolicy) error {
	for i := range policies {
		p := &policies[i]
		_, err := w.c.Clientset().NetworkingV1().NetworkPolicies(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			return w.refused("make NetworkPolicy "+p.Name, "create", "networking.k8s.io/networkpolicies", p.Namespace, err)
		}
	}
	return nil
}

// withdraw removes the policies.
func (w *run) withdraw(ctx context.Context, policies []networkingv1.NetworkPolicy) error {
	for _, p := range policies {
		err := w.c.Clientset().NetworkingV1().NetworkPolicies(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return w.refused("remove NetworkPolicy "+p.Name, "delete", "networking.k8s.io/networkpolicies", p.Namespace, err)
		}
	}
	return nil
}
