// Package upgradelive reads the settings that package upgradecheck holds against a newer version out of a cluster: its
// DaemonSets that run kubelet or kube-proxy, their ConfigMaps, and the configuration of each Windows kubelet. It makes a
// few requests for the cluster and one for each node, and changes nothing.
package upgradelive

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// Options choose what is read.
type Options struct {
	Nodes    []string        // names of Windows nodes; none: all
	Selector labels.Selector // of Windows nodes; nil: all
	// Workloads also reads Deployments and StatefulSets, which only a change of Windows can break.
	Workloads bool
	// Pods also reads all other kinds that make pods, and pods that none of them makes. A kind that the user may not list is
	// recorded in the Reader.
	Pods bool
}

// NoSuchNodeError reports a name that is no Windows node of the cluster.
type NoSuchNodeError struct{ Node string }

func (e *NoSuchNodeError) Error() string {
	return fmt.Sprintf("the cluster has no Windows node %q; `kubectl get nodes -l %s=windows` lists them", e.Node, corev1.LabelOSStable)
}

// sideBySide bounds the nodes that are asked at the same time.
const sideBySide = 16

// Read adds the settings of a cluster to r. It fails if the nodes or the DaemonSets cannot be listed; anything else that
// cannot be read is recorded in r.
func Read(ctx context.Context, c *cluster.Cluster, r *upgradecheck.Reader, o Options) error {
	server, err := c.Version(ctx)
	if err != nil {
		return err
	}
	r.Server = server
	nodes, err := windowsNodes(ctx, c, o)
	if err != nil {
		return err
	}
	if err := objects(ctx, c, r, o); err != nil {
		return err
	}
	return kubelets(ctx, c, r, nodes)
}

// ReadImages adds the Windows nodes of a cluster to r, and the objects whose pods run on them. It asks no kubelet, and reads no
// ConfigMap. present are the names of the images that each node reports, by the node's name: the 50 largest ones, unless
// kubelet's nodeStatusMaxImages is another number.
func ReadImages(ctx context.Context, c *cluster.Cluster, r *upgradecheck.Reader, o Options) (present map[string][]string, err error) {
	nodes, err := windowsNodes(ctx, c, o)
	if err != nil {
		return nil, err
	}
	present = map[string][]string{}
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, nodeOf(n))
		for _, image := range n.Status.Images {
			present[n.Name] = append(present[n.Name], image.Names...)
		}
	}
	return present, (&workloads{c, r, map[string]bool{}}).all(ctx, o)
}

// windowsNodes returns the chosen nodes, in the order of their names.
func windowsNodes(ctx context.Context, c *cluster.Cluster, o Options) ([]*corev1.Node, error) {
	windows := labels.SelectorFromSet(labels.Set{corev1.LabelOSStable: string(corev1.Windows)})
	all, err := c.NodeObjects(ctx, windows)
	if err != nil {
		return nil, err
	}
	for _, name := range o.Nodes {
		if !slices.ContainsFunc(all, func(n *corev1.Node) bool { return n.Name == name }) {
			return nil, &NoSuchNodeError{Node: name}
		}
	}
	all = slices.DeleteFunc(all, func(n *corev1.Node) bool {
		return len(o.Nodes) > 0 && !slices.Contains(o.Nodes, n.Name) || o.Selector != nil && !o.Selector.Matches(labels.Set(n.Labels))
	})
	slices.SortFunc(all, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// kubelets asks the kubelet of each node.
func kubelets(ctx context.Context, c *cluster.Cluster, r *upgradecheck.Reader, nodes []*corev1.Node) error {
	configs, errs := make([][]byte, len(nodes)), make([]error, len(nodes))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i, n := range nodes {
		group.Go(func() error {
			configs[i], errs[i] = c.KubeletConfigz(asking, n.Name)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, n := range nodes {
		about := nodeOf(n)
		place := upgradecheck.Place{Node: n.Name, Field: "configz"}
		if errs[i] != nil {
			r.Unreadable(place, errs[i])
			about.Result, about.Error = upgradecheck.NodeFailed, errs[i].Error()
		} else {
			r.Config(kubesettings.Kubelet, configs[i], upgradecheck.Effective, place)
			about.Read = append(about.Read, "kubelet's running configuration")
		}
		r.Nodes = append(r.Nodes, about)
	}
	return nil
}

// nodeOf returns what a Node object reports.
func nodeOf(n *corev1.Node) upgradecheck.Node {
	info := n.Status.NodeInfo
	about := upgradecheck.Node{Name: n.Name, Result: upgradecheck.NodeRead, Kubelet: info.KubeletVersion, Read: []string{}, Build: info.KernelVersion}
	if version, ok := strings.CutPrefix(info.ContainerRuntimeVersion, "containerd://"); ok {
		about.Containerd = version
	}
	return about
}

// objects reads the objects whose pods run on Windows nodes or run a program of Kubernetes, and their ConfigMaps.
func objects(ctx context.Context, c *cluster.Cluster, r *upgradecheck.Reader, o Options) error {
	maps := map[string]bool{metav1.NamespaceSystem + "/kube-proxy": true, metav1.NamespaceSystem + "/kubelet-config": true}
	if err := (&workloads{c, r, maps}).all(ctx, o); err != nil {
		return err
	}
	return configMaps(ctx, c, r, maps)
}

// mostMaps bounds the ConfigMaps that are read.
const mostMaps = 20

func configMaps(ctx context.Context, c *cluster.Cluster, r *upgradecheck.Reader, wanted map[string]bool) error {
	names := make([]string, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, full := range names {
		namespace, name, _ := strings.Cut(full, "/")
		place := upgradecheck.Place{Object: "ConfigMap " + full}
		if i >= mostMaps {
			r.Unreadable(place, fmt.Errorf("more than %d ConfigMaps are mounted by pods of kube-proxy", mostMaps))
			continue
		}
		found, err := c.Clientset().CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.Unreadable(place, c.Failure("read it", cluster.Permission{Verb: "get", Resource: "configmaps", Namespace: namespace, Name: name}, err))
			continue
		}
		text, err := yaml.Marshal(map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace},
			"data": found.Data})
		if err != nil {
			r.Unreadable(place, err)
			continue
		}
		r.Texts++
		r.Documents(text, upgradecheck.Place{})
	}
	return nil
}

// matters reports whether pods run on Windows nodes, or run a program whose settings are in the table.
func matters(p corev1.PodSpec) bool {
	return p.OS != nil && p.OS.Name == corev1.Windows || p.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows) ||
		p.NodeSelector[corev1.LabelWindowsBuild] != "" || runsProgram(p)
}

// runsProgram reports whether a container runs kubelet or kube-proxy.
func runsProgram(p corev1.PodSpec) bool {
	return slices.ContainsFunc(p.Containers, func(one corev1.Container) bool {
		text := strings.ToLower(strings.Join(slices.Concat(one.Command, one.Args, []string{one.Image, one.Name}), " "))
		return strings.Contains(text, "kube-proxy") || strings.Contains(text, "kubelet")
	})
}
