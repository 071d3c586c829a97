package apiserver

import (
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

const (
	// summaryPath is the path of a kubelet's summary, relative to the kubelet's node in the API.
	// The API server's proxy forwards requests for this path to the kubelet.
	summaryPath = "proxy/stats/summary"
	// burnsLabel sets how many cores each container of a pod uses; without it, a
	// container uses half of its limit, or usualBurn if it has no limit.
	burnsLabel = "simulated.swdt.dev/burns"
	// reportsLabel makes the kubelet report the label's number of cores instead of the cores used.
	// The value "absent" makes the kubelet report no usage, as a kubelet does if the container
	// runtime is faulty.
	reportsLabel = "simulated.swdt.dev/reports"
	usualBurn    = 0.1
	// usualMemory is the memory that every container uses, in bytes.
	usualMemory = 48 << 20
	// tick is the resolution of Windows' counters of CPU time.
	tick = 15625 * time.Microsecond
)

// summary returns the kubelet's summary of the pods that run on a node. Their containers have used
// CPU time since the pod was created.
func (c *Cluster) summary(node string) (*statsv1alpha1.Summary, error) {
	if _, ok := c.store.get(key{"nodes", "", node}); !ok {
		nodes, _ := c.resource("", "v1", "nodes")
		return nil, apierrors.NewNotFound(groupResource(nodes), node)
	}
	summary := &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: node}, Pods: []statsv1alpha1.PodStats{}}
	pods, _ := c.store.list("pods", "")
	for _, pod := range pods {
		if text(pod, "spec", "nodeName") == node && text(pod, "status", "phase") == "Running" {
			summary.Pods = append(summary.Pods, podStats(pod, c.now()))
		}
	}
	return summary, nil
}

func podStats(pod object, now time.Time) statsv1alpha1.PodStats {
	started := now
	if at, err := time.Parse(time.RFC3339, text(pod, "metadata", "creationTimestamp")); err == nil {
		started = at
	}
	stats := statsv1alpha1.PodStats{
		PodRef: statsv1alpha1.PodReference{Name: text(pod, "metadata", "name"),
			Namespace: text(pod, "metadata", "namespace"), UID: text(pod, "metadata", "uid")},
		StartTime: metav1.NewTime(started),
	}
	spec, _ := pod["spec"].(object)
	containers, _ := spec["containers"].([]any)
	for _, one := range containers {
		container, _ := one.(object)
		stats.Containers = append(stats.Containers, containerStats(pod, container, started, now))
	}
	return stats
}

func containerStats(pod, container object, started, now time.Time) statsv1alpha1.ContainerStats {
	burns := cores(pod, container)
	used := time.Duration(burns * float64(now.Sub(started))).Truncate(tick)
	counter, cores, memory := uint64(used), uint64(burns*1e9), uint64(usualMemory)
	stats := statsv1alpha1.ContainerStats{
		Name: text(container, "name"), StartTime: metav1.NewTime(started),
		CPU: &statsv1alpha1.CPUStats{Time: metav1.NewTime(now), UsageCoreNanoSeconds: &counter,
			UsageNanoCores: &cores},
		Memory: &statsv1alpha1.MemoryStats{Time: metav1.NewTime(now), WorkingSetBytes: &memory},
	}
	switch reports := text(pod, "metadata", "labels", reportsLabel); {
	case reports == "absent":
		stats.CPU.UsageNanoCores = nil
	case reports != "":
		if value, err := strconv.ParseFloat(reports, 64); err == nil {
			cores = uint64(value * 1e9)
		}
	}
	return stats
}

// cores returns how many cores a container uses.
func cores(pod, container object) float64 {
	if burns, err := strconv.ParseFloat(text(pod, "metadata", "labels", burnsLabel), 64); err == nil {
		return burns
	}
	limit, err := resource.ParseQuantity(text(container, "resources", "limits", "cpu"))
	if err != nil {
		return usualBurn
	}
	return limit.AsApproximateFloat64() / 2
}
