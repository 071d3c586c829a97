package hns

import (
	"slices"
	"strings"
)

// What is said of whose an object is, where no name can be.
const (
	None    = "none"    // nobody's, as those tell who would know
	Unknown = "unknown" // nobody told
)

// Pod is a pod that has a network.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Sandbox and NetworkNamespace are IDs that the container runtime tells.
	Sandbox          string   `json:"sandbox,omitempty"`
	NetworkNamespace string   `json:"networkNamespace,omitempty"`
	IPs              []string `json:"ips,omitempty"`
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Service is a Service with addresses.
type Service struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	IPs       []string      `json:"ips,omitempty"` // cluster IPs, external ones, load balancers'
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

// Known is what is known about whose objects are.
type Known struct {
	// Here are the pods of the node, as its runtime tells; Runtime is whether it
	// did.
	Here    []Pod `json:"here,omitempty"`
	Runtime bool  `json:"runtime"`
	// Everywhere are all pods, and Services, of the cluster; Cluster is whether it
	// was asked and answered.
	Everywhere []Pod     `json:"everywhere,omitempty"`
	Services   []Service `json:"services,omitempty"`
	Cluster    bool      `json:"cluster"`
}

// PodOf is the pod that an endpoint is of: NAMESPACE/NAME, None or Unknown. The
// runtime's word counts most: the network namespace that they share; the sandbox's
// ID, with which Calico and others begin an endpoint's name; then its address.
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

// addressOf is whether a pod has an endpoint's address.
func addressOf(e Endpoint) func(Pod) bool {
	return func(p Pod) bool { return e.IP() != "" && slices.Contains(p.IPs, e.IP()) }
}

// PodIn is the pod of a namespace.
func (k Known) PodIn(s State, n Namespace) string {
	if pod, ok := find(k.Here, func(p Pod) bool { return p.NetworkNamespace != "" && strings.EqualFold(p.NetworkNamespace, n.ID) }); ok {
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

// ServiceOf is the Service that a load balancer is of: NAMESPACE/NAME, None or
// Unknown.
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

// has compares addresses and ports, or for one without an address node ports.
func (s Service) has(l LoadBalancer) bool {
	if len(l.VIPs) == 0 {
		return s.hasNodePort(l)
	}
	if !slices.ContainsFunc(l.VIPs, func(vip string) bool { return slices.Contains(s.IPs, vip) }) {
		return false
	}
	return slices.ContainsFunc(s.Ports, func(port ServicePort) bool {
		return slices.ContainsFunc(l.Ports, func(m PortMapping) bool { return m.Protocol == port.Protocol && m.External == port.Port })
	})
}

func (s Service) hasNodePort(l LoadBalancer) bool {
	return slices.ContainsFunc(s.Ports, func(port ServicePort) bool {
		return port.NodePort != 0 && slices.ContainsFunc(l.Ports, func(m PortMapping) bool {
			return m.Protocol == port.Protocol && m.External == port.NodePort
		})
	})
}
