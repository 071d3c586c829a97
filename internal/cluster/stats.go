package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// StatsSummary returns the kubelet's /stats/summary, through the API server's proxy to the
// node.
func (c *Cluster) StatsSummary(ctx context.Context, node string) (*statsv1alpha1.Summary, error) {
	doing := "read the statistics of node " + node
	// Use Stream, since client-go's Do drops the API server's message from the answer.
	body, err := c.client.CoreV1().RESTClient().Get().
		Resource("nodes").Name(node).SubResource("proxy").Suffix("stats/summary").Stream(ctx)
	switch {
	case noNode(err):
		return nil, &NoNodeError{Node: node}
	case err != nil:
		return nil, c.fail(doing, Permission{Verb: "get", Resource: "nodes/proxy", Name: node}, err)
	}
	defer body.Close()
	var summary statsv1alpha1.Summary
	if err := json.NewDecoder(body).Decode(&summary); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return &summary, nil
}

// WindowsNodes returns the names of the cluster's Windows nodes.
func (c *Cluster) WindowsNodes(ctx context.Context) ([]string, error) {
	list, err := c.client.CoreV1().Nodes().List(ctx,
		metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=windows"})
	if err != nil {
		return nil, c.nodeError("list the Windows nodes", "list", "", err)
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names, nil
}

// CPULimits returns the CPU limits of the containers on a node, in cores. The keys are
// namespace/pod/container.
func (c *Cluster) CPULimits(ctx context.Context, node string) (map[string]float64, error) {
	pods, err := c.PodsOn(ctx, node)
	if err != nil {
		return nil, err
	}
	limits := map[string]float64{}
	for _, pod := range pods {
		for _, container := range pod.Spec.Containers {
			if cpu := container.Resources.Limits.Cpu(); !cpu.IsZero() {
				limits[pod.Namespace+"/"+pod.Name+"/"+container.Name] = cpu.AsApproximateFloat64()
			}
		}
	}
	return limits, nil
}

// KubeletConfigz returns the configuration with which a node's kubelet runs, a KubeletConfiguration as JSON: the file of
// --config, its drop-ins and the flags, with kubelet's defaults. The API server's proxy to the node asks kubelet for it.
func (c *Cluster) KubeletConfigz(ctx context.Context, node string) (json.RawMessage, error) {
	doing := "read the configuration of the kubelet of node " + node
	body, err := c.client.CoreV1().RESTClient().Get().
		Resource("nodes").Name(node).SubResource("proxy").Suffix("configz").Stream(ctx)
	switch {
	case noNode(err):
		return nil, &NoNodeError{Node: node}
	case err != nil:
		return nil, c.fail(doing, Permission{Verb: "get", Resource: "nodes/proxy", Name: node}, err)
	}
	defer body.Close()
	var all struct {
		KubeletConfig json.RawMessage `json:"kubeletconfig"`
	}
	if err := json.NewDecoder(io.LimitReader(body, mostConfigz)).Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return all.KubeletConfig, nil
}

// mostConfigz bounds the size of a kubelet's configuration, in bytes.
const mostConfigz = 4 << 20
