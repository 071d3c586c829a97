package hns

import (
	"slices"
	"strings"
)

// None and Unknown are printed in place of an owner's name.
const (
	None    = "none"    // a source that lists such owners answered, and listed no owner
	Unknown = "unknown" // no such source answered
)

// Pod is a pod with its addresses.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Sandbox and NetworkNamespace are IDs that the container runtime reports.
	Sandbox          string   `json:"sandbox,omitempty"`
	NetworkNamespace string   `json:"networkNamespace,omitempty"`
	IPs              []string `json:"ips,omitempty"`
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Service is a Service with its addresses.
type Service struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	IPs       []string      `json:"ips,omitempty"` // cluster IPs, external IPs, load balancer IPs
	Ports     []ServicePort `json:"ports,omitempty"`
}

// ServicePort is a port of a Service.
type ServicePort struct {
	Name     string `json:"name,omitempty"`
	Protocol string `json:"protocol"` // tcp, udp
	Port     uint16 `json:"port"`
	NodePort uint16 `json:"nodePort,omitempty"`
}

func (s Service) String() string { return s.Namespace + "/" + s.Name }

// Known has the pods and Services that may own objects, and which sources of pods and Services
// answered.
type Known struct {
	// Here has the pods of the node; Runtime reports whether the node's container runtime answered.
	Here    []Pod `json:"here,omitempty"`
	Runtime bool  `json:"runtime"`
	// Everywhere has the pods of the cluster that have not ended and are not on the host network.
	// Services has all Services of the cluster. Cluster reports whether the cluster was asked and
	// answered.
	Everywhere []Pod     `json:"everywhere,omitempty"`
	Services   []Service `json:"services,omitempty"`
	Cluster    bool      `json:"cluster"`
}

// PodOf returns the pod of an endpoint: NAMESPACE/NAME, None or Unknown. If the endpoint is on this
// node, PodOf first searches the pods of the runtime: by network namespace, then by sandbox ID,
// then by address. The sandbox ID must be the beginning of the endpoint's name, since Calico and
// others name endpoints like this. After that, PodOf searches the pods of the cluster by address.
func (k Known) PodOf(e Endpoint) string {
	for _, is := range []func(Pod) bool{
		func(p Pod) bool {
			return p.NetworkNamespace != "" && strings.EqualFold(p.NetworkNamespace, e.Namespace)
		},
		func(p Pod) bool { return p.Sandbox != "" && strings.HasPrefix(e.Name, p.Sandbox) },
		addressOf(e),
	} {
		if !e.Remote {
			if pod, ok := find(k.Here, is); ok {
				return pod.String()
			}
		}
	}
	if pod, ok := find(k.Everywhere, addressOf(e)); ok {
		return pod.String()
	}
	if k.Cluster || k.Runtime && !e.Remote {
		return None
	}
	return Unknown
}

// addressOf returns a function that reports whether a pod has the endpoint's address.
func addressOf(e Endpoint) func(Pod) bool {
	return func(p Pod) bool { return e.IP() != "" && slices.Contains(p.IPs, e.IP()) }
}

// PodIn returns the pod of a namespace: NAMESPACE/NAME, None or Unknown.
func (k Known) PodIn(s State, n Namespace) string {
	if pod, ok := find(k.Here,
		func(p Pod) bool { return p.NetworkNamespace != "" && strings.EqualFold(p.NetworkNamespace, n.ID) }); ok {
		return pod.String()
	}
	for _, id := range n.Endpoints {
		if e, ok := s.Endpoint(id); ok {
			if pod := k.PodOf(e); pod != None && pod != Unknown {
				return pod
			}
		}
	}
	if k.Cluster || k.Runtime {
		return None
	}
	return Unknown
}

// ServiceOf returns the Service of a load balancer: NAMESPACE/NAME, None or Unknown.
func (k Known) ServiceOf(l LoadBalancer) string {
	for _, service := range k.Services {
		if service.has(l) {
			return service.String()
		}
	}
	if k.Cluster {
		return None
	}
	return Unknown
}

// has reports whether l is a load balancer of the Service: it compares addresses and
// ports, or only node ports if the load balancer has no address.
func (s Service) has(l LoadBalancer) bool {
	if len(l.VIPs) == 0 {
		return s.hasNodePort(l)
	}
	if !slices.ContainsFunc(l.VIPs, func(vip string) bool { return slices.Contains(s.IPs, vip) }) {
		return false
	}
	return slices.ContainsFunc(s.Ports, func(port ServicePort) bool {
		return slices.ContainsFunc(l.Ports,
			func(m PortMapping) bool { return m.Protocol == port.Protocol && m.External == port.Port })
	})
}

func (s Service) hasNodePort(l LoadBalancer) bool {
	return slices.ContainsFunc(s.Ports, func(port ServicePort) bool {
		return port.NodePort != 0 && slices.ContainsFunc(l.Ports, func(m PortMapping) bool {
			return m.Protocol == port.Protocol && m.External == port.NodePort
		})
	})
}
