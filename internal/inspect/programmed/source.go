package programmed

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

// Source lists the objects of a cluster. All nodes share one, so that nodes that are looked at side by side share a listing.
type Source struct {
	client kubernetes.Interface

	mu     sync.Mutex // is held during a listing
	latest *Snapshot
}

// NewSource returns a source of a cluster's objects.
func NewSource(client kubernetes.Interface) *Source { return &Source{client: client} }

// Snapshot has the objects of a cluster at one moment.
type Snapshot struct {
	// services has the names of all Services, as NAMESPACE/NAME, and backends the number of endpoints in the EndpointSlices of
	// each.
	services []string
	backends map[string]int
	cluster  *kubeproxy.Cluster
	begun    time.Time
	// versions has the versions of each Service and of its EndpointSlices, by NAMESPACE/NAME.
	versions map[string]string
	nodes    map[string]netip.Addr // the internal addresses of nodes, by name
}

// since returns a snapshot whose listing began at a moment, or later.
func (s *Source) since(ctx context.Context, moment time.Time) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest != nil && !s.latest.begun.Before(moment) {
		return s.latest, nil
	}
	latest, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	s.latest = latest
	return latest, nil
}

// Unknown returns the names, with or without a namespace, of which the cluster has no Service.
func (s *Source) Unknown(ctx context.Context, names []string) (unknown []string, err error) {
	snapshot, err := s.since(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(snapshot.services, func(service string) bool { return isNamed(service, name) }) {
			unknown = append(unknown, name)
		}
	}
	return unknown, nil
}

// list lists the objects. Pods come last: a backend that left its EndpointSlice has lost its pod by then.
func (s *Source) list(ctx context.Context) (*Snapshot, error) {
	found := &Snapshot{begun: time.Now(), versions: map[string]string{}, backends: map[string]int{}, nodes: map[string]netip.Addr{}}
	objects := kubeproxy.Objects{Pods: []*corev1.Pod{}}
	err := cluster.Pages(ctx, s.client.CoreV1().Nodes().List, func(page *corev1.NodeList) {
		for _, n := range page.Items {
			found.nodes[n.Name] = internalIP(n)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the cluster's nodes: %w", err)
	}
	err = cluster.Pages(ctx, s.client.CoreV1().Services(metav1.NamespaceAll).List, func(page *corev1.ServiceList) {
		for i := range page.Items {
			service := &page.Items[i]
			objects.Services = append(objects.Services, service)
			found.services = append(found.services, service.Namespace+"/"+service.Name)
			found.note(service.Namespace, service.Name, service.ResourceVersion)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the cluster's Services: %w", err)
	}
	err = cluster.Pages(ctx, s.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List, func(page *discoveryv1.EndpointSliceList) {
		for i := range page.Items {
			slice := &page.Items[i]
			objects.Slices = append(objects.Slices, slice)
			found.backends[slice.Namespace+"/"+slice.Labels[discoveryv1.LabelServiceName]] += len(slice.Endpoints)
			found.note(slice.Namespace, slice.Labels[discoveryv1.LabelServiceName], slice.ResourceVersion)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the cluster's EndpointSlices: %w", err)
	}
	err = cluster.Pages(ctx, s.client.CoreV1().Pods(metav1.NamespaceAll).List, func(page *corev1.PodList) {
		for i := range page.Items {
			objects.Pods = append(objects.Pods, slim(&page.Items[i]))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the cluster's pods: %w", err)
	}
	found.cluster = kubeproxy.NewCluster(objects)
	return found, nil
}

func (s *Snapshot) note(namespace, name, version string) {
	s.versions[namespace+"/"+name] += " " + version
}

// slim returns the fields of a pod that are compared.
func slim(p *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		Spec:   corev1.PodSpec{NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork},
		Status: corev1.PodStatus{Phase: p.Status.Phase, PodIPs: p.Status.PodIPs}}
}

// internalIP returns the first internal address of a node; the invalid address if it has none.
func internalIP(n corev1.Node) netip.Addr {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				return ip
			}
		}
	}
	return netip.Addr{}
}

// isNamed reports whether a Service, NAMESPACE/NAME, has a name, with or without its namespace.
func isNamed(service, name string) bool {
	if strings.Contains(name, "/") {
		return service == name
	}
	_, short, _ := strings.Cut(service, "/")
	return short == name
}
