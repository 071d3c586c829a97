package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
)

var errNoCluster = errors.New("no cluster to ask: set --kubeconfig")

// cluster gathers the facts of the cluster that do not depend on the node's name.
func (g *gatherer) cluster(ctx context.Context) error {
	if g.Cluster == nil {
		g.clusterUnknown(errNoCluster)
		return nil
	}
	server := Server{URL: g.Cluster.Server()}
	version, err := g.Cluster.Version(ctx)
	if err != nil {
		server.Error = err.Error()
		_, server.Unasked = errors.AsType[*cluster.CredentialError](err)
		g.facts.Server = Known(server)
		g.clusterUnknown(errors.New("the API server does not answer"))
		return ctx.Err()
	}
	server.Version = version
	// Only one rule needs the hashes of the CA, and this rule handles missing hashes.
	if hashes, err := g.Cluster.CACertHashes(ctx); err == nil {
		server.CAHashes = hashes
	}
	g.facts.Server = Known(server)
	skew, err := g.Cluster.ClockSkew(ctx)
	g.facts.Clocks = factOf(Clocks{
		NodeAhead: g.clock.Ahead.Seconds(), NodeWithin: g.clock.GiveOrTake.Seconds(),
		ServerAhead: skew.Offset.Seconds(), ServerWithin: skew.Uncertainty.Seconds(),
	}, err)
	network, err := g.Cluster.CNI(ctx)
	g.facts.Network = factOf(network, err)
	g.facts.RuntimeClasses = factOf(g.runtimeClasses(ctx))
	return ctx.Err()
}

func (g *gatherer) clusterUnknown(err error) {
	why := err.Error()
	if g.facts.Server.Value == nil {
		g.facts.Server.Unknown = why
	}
	g.facts.Clocks.Unknown, g.facts.Network.Unknown, g.facts.RuntimeClasses.Unknown = why, why, why
	g.facts.Object.Unknown, g.facts.Others.Unknown, g.facts.Pods.Unknown = why, why, why
}

// aboutCluster gathers the facts about this node that the cluster stores.
func (g *gatherer) aboutCluster(ctx context.Context) error {
	if g.Cluster == nil || g.facts.Server.Value == nil || g.facts.Server.Value.Error != "" {
		return nil
	}
	if g.objectName.Value == nil {
		why := g.objectName.why()
		g.facts.Object.Unknown, g.facts.Others.Unknown, g.facts.Pods.Unknown = why, why, why
		return nil
	}
	name := *g.objectName.Value
	object, err := g.Cluster.Node(ctx, name)
	delete(object.Annotations, corev1.LastAppliedConfigAnnotation) // a copy of the object as it was applied
	g.facts.Object = factOf(object, err)
	g.facts.Others = factOf(g.others(ctx, name))
	g.facts.Pods = factOf(g.podsOn(ctx, name))
	return ctx.Err()
}

func (g *gatherer) runtimeClasses(ctx context.Context) ([]RuntimeClass, error) {
	list, err := g.Cluster.RuntimeClasses(ctx)
	if err != nil {
		return nil, err
	}
	classes := []RuntimeClass{}
	for _, c := range list {
		classes = append(classes, RuntimeClass{Name: c.Name, Handler: c.Handler, Windows: forWindows(c)})
	}
	return classes, nil
}

func forWindows(c nodev1.RuntimeClass) bool {
	return c.Scheduling != nil && c.Scheduling.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows)
}

// others returns all Nodes of the cluster except this node's.
func (g *gatherer) others(ctx context.Context, name string) ([]OtherNode, error) {
	list, err := g.Cluster.Clientset().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := []OtherNode{}
	for _, n := range list.Items {
		if n.Name == name {
			continue
		}
		other := OtherNode{Name: n.Name, SystemUUID: n.Status.NodeInfo.SystemUUID}
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				other.Addresses = append(other.Addresses, a.Address)
			}
		}
		other.Ready = slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		all = append(all, other)
	}
	return all, nil
}

func (g *gatherer) podsOn(ctx context.Context, name string) ([]Pod, error) {
	list, err := g.Cluster.PodsOn(ctx, name)
	if err != nil {
		return nil, err
	}
	pods := []Pod{}
	for _, p := range list {
		pods = append(pods, podOf(p))
	}
	return pods, nil
}

func podOf(p *corev1.Pod) Pod {
	pod := Pod{
		Pod: cluster.Pod{Namespace: p.Namespace, Name: p.Name}, Phase: string(p.Status.Phase),
		HostNetwork: p.Spec.HostNetwork,
		IP:          p.Status.PodIP, Created: p.CreationTimestamp.UTC(), Reason: p.Status.Reason,
		OS:      p.Spec.NodeSelector[corev1.LabelOSStable],
		Waiting: cluster.Waiting(p), Restarts: cluster.Restarts(p),
	}
	if p.Spec.OS != nil {
		pod.OS = string(p.Spec.OS.Name)
	}
	if p.Spec.RuntimeClassName != nil {
		pod.RuntimeClass = *p.Spec.RuntimeClassName
	}
	if p.DeletionTimestamp != nil {
		pod.Deleted = p.DeletionTimestamp.UTC()
	}
	return pod
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}
