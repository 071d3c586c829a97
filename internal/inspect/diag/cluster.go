package diag

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// noClusterError reports that no kubeconfig was given.
type noClusterError struct{}

func (noClusterError) Error() string { return "no cluster to ask: set --kubeconfig" }

// mostEvents is the largest number of the API server's events that are kept for one node.
const mostEvents = 1000

// ofCluster stores the API server's objects about the node, without the metadata that bare removes.
// It requests neither Secrets nor ConfigMaps. Secrets in the objects of pods are redacted like all
// secrets in the bundle.
func ofCluster(ctx context.Context, t *Task) error {
	if t.Cluster == nil {
		return noClusterError{}
	}
	name, err := t.objectName(ctx)
	if err != nil {
		return err
	}
	return errors.Join(t.clusterNode(ctx, name), t.clusterPods(ctx, name), t.runtimeClasses(ctx))
}

// objectName returns the name of the Node object. If the node is not connected, the name is derived
// from the node file.
func (t *Task) objectName(ctx context.Context) (string, error) {
	if t.Node == nil {
		return node.LikelyObjectName(t.Document.Node), nil
	}
	return t.Node.ObjectName(ctx, t.Document.Node.Spec.Kubernetes.Join)
}

func (t *Task) clusterNode(ctx context.Context, name string) error {
	object, err := t.Cluster.NodeObject(ctx, name)
	if err != nil {
		return err
	}
	lease, err := t.Cluster.LeaseObject(ctx, name)
	bare(&object.ObjectMeta)
	document := struct {
		Node  *corev1.Node          `json:"node"`
		Lease *coordinationv1.Lease `json:"lease,omitempty"`
	}{object, lease}
	rows := [][]string{
		{"name", object.Name}, {"kubelet", object.Status.NodeInfo.KubeletVersion},
		{"Windows", object.Status.NodeInfo.OSImage + " " + object.Status.NodeInfo.KernelVersion},
		{"runtime", object.Status.NodeInfo.ContainerRuntimeVersion},
		{"cordoned", strconv.FormatBool(object.Spec.Unschedulable)},
	}
	if lease != nil && lease.Spec.RenewTime != nil {
		rows = append(rows, []string{"lease renewed", clock(lease.Spec.RenewTime.Time)})
	}
	for _, a := range object.Status.Addresses {
		rows = append(rows, []string{string(a.Type), a.Address})
	}
	for _, taint := range object.Spec.Taints {
		rows = append(rows, []string{"taint", taint.ToString()})
	}
	for _, c := range object.Status.Conditions {
		rows = append(rows,
			[]string{string(c.Type),
				strings.TrimRight(fmt.Sprintf("%s since %s: %s: %s", c.Status, clock(c.LastTransitionTime.Time),
					c.Reason, oneLine(c.Message)), ": ")})
	}
	return errors.Join(err, t.Table("cluster-node", document, func(w io.Writer) error { return ui.Lines(w, rows) }))
}

// clusterPods stores the pods of the node, and the events about the node and about these pods.
func (t *Task) clusterPods(ctx context.Context, name string) error {
	pods, err := t.Cluster.PodsOn(ctx, name)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, p := range pods {
		bare(&p.ObjectMeta)
		waits := strings.Join(cluster.Waiting(p), "; ")
		rows = append(rows, []string{
			p.Namespace + "/" + p.Name, string(p.Status.Phase), readyContainers(p), strconv.Itoa(cluster.Restarts(p)),
			p.Status.PodIP,
			cmp.Or(waits, p.Status.Reason, "-"),
		})
	}
	err = t.Table("cluster-pods", pods, func(w io.Writer) error {
		return ui.Table(w, []string{"POD", "PHASE", "READY", "RESTARTS", "IP", "WAITS FOR"}, rows)
	})
	return errors.Join(err, t.clusterEvents(ctx, name, pods))
}

func (t *Task) clusterEvents(ctx context.Context, name string, pods []*corev1.Pod) error {
	events, err := t.Cluster.EventsAbout(ctx, name, pods, mostEvents)
	if err != nil {
		return err
	}
	var rows [][]string
	for i := range events {
		e := &events[i]
		bare(&e.ObjectMeta)
		about := strings.ToLower(e.InvolvedObject.Kind) + " " +
			strings.TrimPrefix(e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name, "/")
		rows = append(rows, []string{clock(cluster.LastSeen(*e)), e.Type, e.Reason, about,
			strconv.Itoa(int(max(e.Count, 1))), oneLine(e.Message)})
	}
	return t.Table("cluster-events", events, func(w io.Writer) error {
		return ui.Table(w, []string{"LAST", "TYPE", "REASON", "ABOUT", "TIMES", "MESSAGE"}, rows)
	})
}

func (t *Task) runtimeClasses(ctx context.Context) error {
	classes, err := t.Cluster.RuntimeClasses(ctx)
	if err != nil {
		return err
	}
	var rows [][]string
	for i := range classes {
		c := &classes[i]
		bare(&c.ObjectMeta)
		nodes := ""
		if c.Scheduling != nil {
			nodes = metav1.FormatLabelSelector(metav1.SetAsLabelSelector(c.Scheduling.NodeSelector))
		}
		rows = append(rows, []string{c.Name, c.Handler, cmp.Or(nodes, "all")})
	}
	return t.Table("cluster-runtimeclasses", classes, func(w io.Writer) error {
		return ui.Table(w, []string{"RUNTIMECLASS", "HANDLER", "NODES"}, rows)
	})
}

// bare removes the metadata that does not describe the object: the managed fields, and the
// annotation with a copy of the object.
func bare(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
}

func readyContainers(p *corev1.Pod) string {
	ready := 0
	for _, c := range p.Status.ContainerStatuses {
		if c.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers))
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// clusterOwners has the cluster's pods and Services, which own the objects of the nodes' host
// network services. Pods and Services are requested once for all nodes.
type clusterOwners struct {
	known hns.Known
	err   error
}

// ownersTimeout limits the request for the owners, since the collectors of the nodes wait
// for the owners.
const ownersTimeout = 30 * time.Second

func askOwners(ctx context.Context, o Options) (found clusterOwners) {
	if o.Cluster == nil || o.Profile < Network {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, ownersTimeout)
	defer cancel()
	found.err = found.known.AskCluster(ctx, o.Cluster.Clientset())
	return found
}
