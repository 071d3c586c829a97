package hns

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// AskCluster adds the cluster's Services, and the pods of all nodes, since endpoints may belong to
// pods of other nodes.
func (k *Known) AskCluster(ctx context.Context, client kubernetes.Interface) error {
	var everywhere []Pod
	err := cluster.Pages(ctx, client.CoreV1().Pods(metav1.NamespaceAll).List, func(page *corev1.PodList) {
		for i := range page.Items {
			// Pods on the host network have their node's address.
			if p := &page.Items[i]; !p.Spec.HostNetwork && p.Status.Phase != corev1.PodSucceeded &&
				p.Status.Phase != corev1.PodFailed {
				everywhere = append(everywhere, clusterPod(p))
			}
		}
	})
	if err != nil {
		return fmt.Errorf("list the cluster's pods: %w", err)
	}
	var services []Service
	err = cluster.Pages(ctx, client.CoreV1().Services(metav1.NamespaceAll).List, func(page *corev1.ServiceList) {
		for i := range page.Items {
			services = append(services, service(&page.Items[i]))
		}
	})
	if err != nil {
		return fmt.Errorf("list the cluster's Services: %w", err)
	}
	k.Everywhere, k.Services, k.Cluster = everywhere, services, true
	return nil
}

func clusterPod(p *corev1.Pod) Pod {
	pod := Pod{Namespace: p.Namespace, Name: p.Name}
	for _, ip := range p.Status.PodIPs {
		pod.IPs = append(pod.IPs, ip.IP)
	}
	if len(pod.IPs) == 0 && p.Status.PodIP != "" {
		pod.IPs = []string{p.Status.PodIP}
	}
	return pod
}

func service(s *corev1.Service) Service {
	found := Service{Namespace: s.Namespace, Name: s.Name}
	addresses := append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...)
	addresses = append(addresses, s.Spec.ExternalIPs...)
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		addresses = append(addresses, ingress.IP)
	}
	for _, address := range addresses {
		if address != "" && address != corev1.ClusterIPNone {
			found.IPs = append(found.IPs, address)
		}
	}
	for _, p := range s.Spec.Ports {
		found.Ports = append(found.Ports, ServicePort{
			Name: p.Name, Protocol: strings.ToLower(string(p.Protocol)), Port: uint16(p.Port),
			NodePort: uint16(p.NodePort),
		})
	}
	return found
}
