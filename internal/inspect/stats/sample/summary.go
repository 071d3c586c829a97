package sample

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// limitsEvery is the age of the pods' CPU limits at which they are read again.
const limitsEvery = time.Minute

// Summary is the source that asks the kubelet, through the API server.
type Summary struct {
	cluster *cluster.Cluster
	node    string
	cores   float64

	mu     sync.Mutex
	limits map[string]float64
	read   time.Time
}

// NewSummary returns a source that asks the kubelet of a node. node is the name of the
// Node object, and cores is the node's number of cores (0: not known).
func NewSummary(c *cluster.Cluster, node string, cores float64) *Summary {
	return &Summary{cluster: c, node: node, cores: cores}
}

// Source returns stats.Summary.
func (s *Summary) Source() stats.Source { return stats.Summary }

// Ask requests /stats/summary.
func (s *Summary) Ask(ctx context.Context) ([]stats.Sample, float64, error) {
	limits := s.limitsNow(ctx)
	summary, err := s.cluster.StatsSummary(ctx, s.node)
	if err != nil {
		return nil, 0, err
	}
	var samples []stats.Sample
	for _, pod := range summary.Pods {
		for _, c := range pod.Containers {
			if c.CPU == nil {
				continue
			}
			samples = append(samples, sampleOf(pod.PodRef, c, limits))
		}
	}
	return samples, s.cores, nil
}

// sampleOf returns the sample of a container. The summary has no IDs; the time of the
// container's start distinguishes the container from the one before a restart.
func sampleOf(pod statsv1alpha1.PodReference, c statsv1alpha1.ContainerStats, limits map[string]float64) stats.Sample {
	of := stats.Container{ID: started(c.StartTime), Namespace: pod.Namespace, Pod: pod.Name, Name: c.Name}
	sample := stats.Sample{
		Container: of, Taken: c.CPU.Time.Time, Reported: c.CPU.UsageNanoCores, Counter: c.CPU.UsageCoreNanoSeconds,
		Limit: limits[of.Path()],
	}
	if c.Memory != nil {
		sample.Memory = c.Memory.WorkingSetBytes
	}
	return sample
}

func started(at metav1.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// limitsNow returns the CPU limits, and reads them again every limitsEvery. It ignores
// errors, such as a missing permission to list pods: without limits, fewer samples can be
// judged.
func (s *Summary) limitsNow(ctx context.Context) map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.read) < limitsEvery {
		return s.limits
	}
	s.read = time.Now()
	if limits, err := s.cluster.CPULimits(ctx, s.node); err == nil {
		s.limits = limits
	}
	return s.limits
}
