package kubeproxy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Objects are the objects of the API server that decide what a node's HNS must hold.
type Objects struct {
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	Pods     []*corev1.Pod
}

// Cluster has the Services of a cluster with their backends. It is made once, and serves all nodes.
type Cluster struct {
	ports []*servicePort
	// named has all addresses of EndpointSlices, and clusterIPs those of Services.
	named, clusterIPs map[netip.Addr]bool
	pods              map[netip.Addr][]pod // those that have not ended and are not on the host network
	hostPods          map[netip.Addr]bool  // the addresses of pods on the host network
	hasPods           bool
}

// pod is a pod that has an address of its own.
type pod struct{ name, node string }

// servicePort is a port of a Service in one IP family.
type servicePort struct {
	service  types.NamespacedName
	name     string // of the port
	protocol string // in lower case
	family   corev1.IPFamily
	external uint16
	target   uint16 // 0: the Service names its target port
	nodePort uint16
	health   uint16 // health check node port; 0: none
	vip      netip.Addr
	externalIPs,
	ingressIPs []netip.Addr
	internalLocal, externalLocal, preserve, sticky bool
	backends                                       []backend
}

// backend is an endpoint of an EndpointSlice.
type backend struct {
	address                     netip.Addr
	port                        uint16
	node                        string // "": the slice does not name it
	ready, serving, terminating bool
}

// NewCluster finds the backends of all Services. It takes Pods to be unknown if they are nil.
func NewCluster(o Objects) *Cluster {
	c := &Cluster{named: map[netip.Addr]bool{}, clusterIPs: map[netip.Addr]bool{}, pods: map[netip.Addr][]pod{},
		hostPods: map[netip.Addr]bool{}, hasPods: o.Pods != nil}
	c.addPods(o.Pods)
	backends := c.backends(o.Slices)
	for _, s := range o.Services {
		if isWatched(s) {
			c.addService(s, backends)
		}
	}
	slices.SortFunc(c.ports, func(a, b *servicePort) int {
		return cmp.Or(strings.Compare(a.service.String(), b.service.String()), cmp.Compare(a.external, b.external),
			strings.Compare(a.protocol, b.protocol), cmp.Compare(a.family, b.family))
	})
	return c
}

func (c *Cluster) addPods(all []*corev1.Pod) {
	for _, p := range all {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, ip := range p.Status.PodIPs {
			a := parseAddr(ip.IP)
			if p.Spec.HostNetwork {
				c.hostPods[a] = true
			} else if a.IsValid() {
				c.pods[a] = append(c.pods[a], pod{p.Namespace + "/" + p.Name, p.Spec.NodeName})
			}
		}
	}
}

// isWatched reports whether kube-proxy watches a Service or an EndpointSlice: it leaves those of another proxy out, and those
// of headless Services (kubernetes v1.36.3, cmd/kube-proxy/app/server.go, the label selector of its informers).
func isWatched(o metav1.Object) bool {
	for _, label := range []string{"service.kubernetes.io/service-proxy-name", corev1.IsHeadlessService} {
		if _, ok := o.GetLabels()[label]; ok {
			return false
		}
	}
	return true
}

// portKey names a port of a Service as EndpointSlices do.
type portKey struct {
	service  types.NamespacedName
	port     string
	protocol corev1.Protocol
	family   corev1.IPFamily
}

// backends returns the backends of all ports, in the order of their addresses. Of two with the same address and port, the
// one that is not terminating wins (pkg/proxy/endpointslicecache.go, addEndpoints).
func (c *Cluster) backends(all []*discoveryv1.EndpointSlice) map[portKey][]backend {
	type place struct {
		address netip.Addr
		port    uint16
	}
	found := map[portKey]map[place]backend{}
	for _, slice := range all {
		name := slice.Labels[discoveryv1.LabelServiceName]
		family := corev1.IPFamily(slice.AddressType)
		if !isWatched(slice) || name == "" || family != corev1.IPv4Protocol && family != corev1.IPv6Protocol {
			continue
		}
		for _, e := range slice.Endpoints {
			for _, address := range e.Addresses {
				c.named[parseAddr(address)] = true
			}
		}
		for _, p := range slice.Ports {
			if p.Name == nil || p.Port == nil || *p.Port == 0 {
				continue
			}
			key := portKey{types.NamespacedName{Namespace: slice.Namespace, Name: name}, *p.Name,
				deref(p.Protocol, corev1.ProtocolTCP), family}
			if found[key] == nil {
				found[key] = map[place]backend{}
			}
			for _, e := range slice.Endpoints {
				b, ok := backendOf(e, uint16(*p.Port))
				at := place{b.address, b.port}
				if _, exists := found[key][at]; ok && (!exists || !b.terminating) {
					found[key][at] = b
				}
			}
		}
	}
	sorted := make(map[portKey][]backend, len(found))
	for key, places := range found {
		list := make([]backend, 0, len(places))
		for _, b := range places {
			list = append(list, b)
		}
		slices.SortFunc(list, func(a, b backend) int {
			return cmp.Or(a.address.Compare(b.address), cmp.Compare(a.port, b.port))
		})
		sorted[key] = list
	}
	return sorted
}

func backendOf(e discoveryv1.Endpoint, port uint16) (backend, bool) {
	if len(e.Addresses) == 0 {
		return backend{}, false
	}
	b := backend{address: parseAddr(e.Addresses[0]), port: port, node: deref(e.NodeName, ""),
		ready: deref(e.Conditions.Ready, true), serving: deref(e.Conditions.Serving, true),
		terminating: deref(e.Conditions.Terminating, false)}
	return b, b.address.IsValid()
}

func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// addService adds the ports of a Service in each of its IP families. A Service without a cluster IP, and an ExternalName,
// have nothing in HNS (pkg/proxy/util, ShouldSkipService).
func (c *Cluster) addService(s *corev1.Service, backends map[portKey][]backend) {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	vips := map[corev1.IPFamily]netip.Addr{}
	for _, text := range append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...) {
		a := parseAddr(text)
		if _, known := vips[familyOf(a)]; a.IsValid() && !known {
			vips[familyOf(a)] = a
			c.clusterIPs[a] = true
		}
	}
	for family, vip := range vips {
		for _, p := range s.Spec.Ports {
			port := portOf(s, p, family, vip)
			port.backends = backends[portKey{port.service, p.Name, protocolOf(p), family}]
			c.ports = append(c.ports, port)
		}
	}
}

func protocolOf(p corev1.ServicePort) corev1.Protocol { return cmp.Or(p.Protocol, corev1.ProtocolTCP) }

func portOf(s *corev1.Service, p corev1.ServicePort, family corev1.IPFamily, vip netip.Addr) *servicePort {
	port := &servicePort{
		service: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, name: p.Name,
		protocol: strings.ToLower(string(protocolOf(p))), family: family, external: uint16(p.Port),
		nodePort: uint16(p.NodePort), vip: vip,
		internalLocal: deref(s.Spec.InternalTrafficPolicy, "") == corev1.ServiceInternalTrafficPolicyLocal,
		externalLocal: s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		preserve:      s.Annotations["preserve-destination"] == "true",
		sticky:        s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
	}
	if p.TargetPort.Type == intstr.Int {
		port.target = uint16(p.TargetPort.IntVal)
	}
	for _, text := range s.Spec.ExternalIPs {
		if a := parseAddr(text); familyOf(a) == family {
			port.externalIPs = append(port.externalIPs, a)
		}
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		a := parseAddr(in.IP)
		if familyOf(a) == family && deref(in.IPMode, corev1.LoadBalancerIPModeVIP) == corev1.LoadBalancerIPModeVIP {
			port.ingressIPs = append(port.ingressIPs, a)
		}
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && port.externalLocal {
		port.health = uint16(s.Spec.HealthCheckNodePort)
	}
	return port
}
