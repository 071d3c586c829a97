package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The functions below return objects as the API server has them, for code that searches for
// the cause of a node's problem.

// pageSize is the number of objects that one request returns. With pages, a caller that
// only scans the objects does not hold all of them in memory.
const pageSize = 500

// Pages lists objects in pages, and passes them to take, one page at a time.
func Pages[L metav1.ListInterface](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error),
	take func(L)) error {
	at := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := list(ctx, at)
		if err != nil {
			return err
		}
		take(page)
		if at.Continue = page.GetContinue(); at.Continue == "" {
			return nil
		}
	}
}

// NodeObject returns a Node object. If it does not exist, the error is a *NoNodeError.
func (c *Cluster) NodeObject(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, &NoNodeError{Node: name}
	}
	return node, c.nodeError("read node "+name, "get", name, err)
}

// mostNodes bounds a list of Nodes: four times what Kubernetes supports in one cluster.
const mostNodes = 20_000

// NodeObjects returns the Node objects that a selector matches.
func (c *Cluster) NodeObjects(ctx context.Context, selector labels.Selector) (all []*corev1.Node, err error) {
	list := func(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
		o.LabelSelector = selector.String()
		return c.client.CoreV1().Nodes().List(ctx, o)
	}
	bounded := func(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
		if len(all) > mostNodes {
			return nil, fmt.Errorf("the API server lists more than %d nodes; choose fewer by a selector", mostNodes)
		}
		return list(ctx, o)
	}
	err = Pages(ctx, bounded, func(page *corev1.NodeList) {
		for i := range page.Items {
			page.Items[i].Status.Images = nil // most of the object, and never needed
			all = append(all, &page.Items[i])
		}
	})
	return all, c.nodeError("list the nodes", "list", "", err)
}

// LeaseObject returns a node's lease; nil if there is none.
func (c *Cluster) LeaseObject(ctx context.Context, node string) (*coordinationv1.Lease, error) {
	lease, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return lease, c.fail("read the lease of node "+node, leasePermission(), err)
}

// RuntimeClasses returns the cluster's RuntimeClasses.
func (c *Cluster) RuntimeClasses(ctx context.Context) ([]nodev1.RuntimeClass, error) {
	list, err := c.client.NodeV1().RuntimeClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.fail("list the RuntimeClasses", Permission{Verb: "list", Group: nodev1.GroupName,
			Resource: "runtimeclasses"}, err)
	}
	return list.Items, nil
}

// EventsAbout returns the newest events, the newest last, and no more than most. It selects
// events about a node or its pods, and events that the node's kubelet reported about pods that no
// longer exist.
func (c *Cluster) EventsAbout(ctx context.Context, node string, pods []*corev1.Pod, most int) ([]corev1.Event, error) {
	here := map[Pod]bool{}
	for _, p := range pods {
		here[podOf(p)] = true
	}
	var about []corev1.Event
	err := Pages(ctx, c.client.CoreV1().Events(metav1.NamespaceAll).List, func(page *corev1.EventList) {
		for _, e := range page.Items {
			on := e.InvolvedObject
			if on.Kind == "Node" && on.Name == node || on.Kind == "Pod" && here[Pod{on.Namespace, on.Name}] ||
				e.Source.Host == node {
				about = append(about, e)
			}
		}
		slices.SortStableFunc(about, func(a, b corev1.Event) int { return LastSeen(a).Compare(LastSeen(b)) })
		about = about[max(0, len(about)-most):]
	})
	return about, c.fail("list the events", Permission{Verb: "list", Resource: "events"}, err)
}

// LastSeen returns when an event happened last.
func LastSeen(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// Waiting returns the reasons why containers of a pod are waiting, such as "app:
// ErrImagePull: …".
func Waiting(p *corev1.Pod) (all []string) {
	for _, c := range containerStatuses(p) {
		if waiting := c.State.Waiting; waiting != nil {
			line, _, _ := strings.Cut(strings.TrimSpace(waiting.Message), "\n")
			all = append(all, strings.TrimSuffix(c.Name+": "+waiting.Reason+": "+strings.TrimSpace(line), ": "))
		}
	}
	return all
}

// Restarts returns the number of restarts of the pod's most restarted container.
func Restarts(p *corev1.Pod) (most int) {
	for _, c := range containerStatuses(p) {
		most = max(most, int(c.RestartCount))
	}
	return most
}

func containerStatuses(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}
