package kubeproxy_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

// nodePort makes a Service one of the type NodePort.
func nodePort(port int32) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, port
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
}

// loadBalanced makes a Service one of the type LoadBalancer.
func loadBalanced(ip string, port, health int32) func(*corev1.Service) {
	return func(s *corev1.Service) {
		nodePort(port)(s)
		s.Spec.Type, s.Spec.HealthCheckNodePort = corev1.ServiceTypeLoadBalancer, health
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	}
}

func externalLocal(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}
func internalLocal(s *corev1.Service) {
	s.Spec.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyLocal)
}

const (
	here, there    = "win-1", "win-2"
	vip            = "10.96.0.20"
	podHere        = "10.244.1.5"
	podThere       = "10.244.2.7"
	anotherThere   = "10.244.2.8"
	dsr, ipv6      = 1, 2
	viaNodePort    = 2 + 16
	viaExternal    = 16
	viaPreserved   = 16 + 8 + 4
	viaHealthCheck = 0
)

// sound is a node with a Service of each sort of load balancer, all as kube-proxy makes them.
func sound() *world {
	w := newWorld()
	both := append(pods(here, podHere), pods(there, podThere)...)
	local, remote := w.local(podHere), w.remote(podThere)
	w.serve("plain", vip, both)
	w.balance(vip, 80, dsr, 0, local, remote)
	w.serve("outside", "10.96.0.21", both, nodePort(30080))
	w.balance("10.96.0.21", 80, dsr, 0, local, remote)
	w.balance("", 30080, 0, viaNodePort, local, remote)
	return w
}

// TestSoundNodes checks that nothing is found on nodes with the load balancers that kube-proxy makes, for each rule.
func TestSoundNodes(t *testing.T) {
	both := append(pods(here, podHere), pods(there, podThere)...)
	for name, make := range map[string]func(w *world, local, remote string){
		"Services without backends, addresses or HNS": func(w *world, _, _ string) {
			w.serve("empty", "10.96.1.1", nil)
			s := w.serve("headless", "10.96.1.2", both)
			s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
			w.serve("external", "10.96.1.3", both).Spec.Type = corev1.ServiceTypeExternalName
		},
		"internal traffic policy Local": func(w *world, local, _ string) {
			w.serve("inside", "10.96.1.1", both, internalLocal)
			w.balance("10.96.1.1", 80, dsr, 0, local)
			w.serve("elsewhere", "10.96.1.2", pods(there, podThere), internalLocal)
		},
		"external traffic policy Local": func(w *world, local, remote string) {
			w.serve("balanced", "10.96.1.1", both, loadBalanced("203.0.113.9", 30081, 30999), externalLocal)
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)
			w.balance("", 30081, dsr, viaNodePort, local)
			w.balance("203.0.113.9", 80, dsr, viaExternal, local)
		},
		"ingress of a proxy, and of another family": func(w *world, local, remote string) {
			s := w.serve("balanced", "10.96.1.1", both, loadBalanced("203.0.113.9", 30081, 0))
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress,
				corev1.LoadBalancerIngress{IP: "203.0.113.10", IPMode: ptr(corev1.LoadBalancerIPModeProxy)},
				corev1.LoadBalancerIngress{IP: "2001:db8::9"}, corev1.LoadBalancerIngress{Hostname: "lb.example"})
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)
			w.balance("", 30081, 0, viaNodePort, local, remote)
			w.balance("203.0.113.9", 80, 0, viaExternal, local, remote)
		},
		"preserve-destination": func(w *world, local, remote string) {
			w.serve("kept", "10.96.1.1", both, loadBalanced("203.0.113.9", 30081, 0)).Annotations["preserve-destination"] = "true"
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)
			w.balance("", 30081, 0, viaNodePort, local)
			w.balance("203.0.113.9", 80, dsr, viaPreserved, local)
		},
		"external addresses, one of which is the ingress": func(w *world, local, remote string) {
			w.serve("balanced", "10.96.1.1", both, loadBalanced("203.0.113.9", 30081, 0)).Spec.ExternalIPs =
				[]string{"203.0.113.9", "203.0.113.011"}
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)
			w.balance("", 30081, 0, viaNodePort, local, remote)
			w.balance("203.0.113.9", 80, 0, viaExternal, local, remote)
			w.balance("203.0.113.11", 80, 0, viaExternal, local, remote)
		},
		"health checks": func(w *world, local, remote string) {
			w.settings.ForwardHealthCheckVIP, w.settings.RootEndpoint, w.settings.HealthzPort = true, "cbr0", 10256
			root := w.local("10.244.1.2")
			w.endpoints[root]["Name"] = "cbr0"
			w.serve("balanced", "10.96.1.1", both, loadBalanced("203.0.113.9", 30081, 30999), externalLocal)
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)
			w.balance("", 30081, dsr, viaNodePort, local)
			w.balance("203.0.113.9", 80, dsr, viaExternal, local)
			check := w.balance("203.0.113.9", 30999, 0, viaHealthCheck, root)
			check["PortMappings"].([]any)[0].(object)["InternalPort"] = 30999
		},
		"Services and slices that kube-proxy does not watch": func(w *world, _, _ string) {
			w.serve("meshed", "10.96.1.1", both).Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "mesh"}
			w.serve("other", "10.96.1.2", nil)
			w.slice("other", discoveryv1.AddressTypeIPv4, 8080, both)
			w.Slices[len(w.Slices)-1].Labels["service.kubernetes.io/headless"] = ""
		},
		"health checks of two Services with one ingress address": func(w *world, local, remote string) {
			w.settings.ForwardHealthCheckVIP, w.settings.RootEndpoint, w.settings.HealthzPort = true, "cbr0", 10256
			root := w.local("10.244.1.2")
			w.endpoints[root]["Name"] = "cbr0"
			for i, name := range []string{"first", "second"} {
				ip, port := "10.96.1."+strconv.Itoa(i+1), int32(30081+i)
				w.serve(name, ip, both, loadBalanced("203.0.113.9", port, 0)).Spec.Ports[0].Port = int32(80 + i)
				w.balance(ip, 80+i, dsr, 0, local, remote)
				w.balance("", int(port), 0, viaNodePort, local, remote)
				w.balance("203.0.113.9", 80+i, 0, viaExternal, local, remote)
			}
			check := w.balance("203.0.113.9", 10256, 0, viaHealthCheck, root)
			check["PortMappings"].([]any)[0].(object)["InternalPort"] = 10256
		},
		"session affinity": func(w *world, local, remote string) {
			w.serve("sticky", "10.96.1.1", both).Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)["PortMappings"].([]any)[0].(object)["DistributionType"] = 2
		},
		"dual stack": func(w *world, local, remote string) {
			w.endpoints[local]["IpConfigurations"] = append(w.endpoints[local]["IpConfigurations"].([]any), object{"IpAddress": "fd00:1::5"})
			s := w.serve("dual", "10.96.1.1", both, nodePort(30081))
			s.Spec.ClusterIPs = []string{"10.96.1.1", "fd00:96::1"}
			w.slice("dual", discoveryv1.AddressTypeIPv6, 8080, append(pods(here, "fd00:1::5"), pods(there, "fd00:2::7")...))
			six := w.remote("fd00:2::7")
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)
			w.balance("", 30081, 0, viaNodePort, local, remote)
			w.balance("fd00:96::1", 80, dsr+ipv6, 0, local, six)
			w.balance("", 30081, ipv6, viaNodePort, local, six)
		},
		"one family of two": func(w *world, local, remote string) {
			w.settings.Families = []corev1.IPFamily{corev1.IPv4Protocol}
			s := w.serve("dual", "10.96.1.1", both)
			s.Spec.ClusterIPs = []string{"10.96.1.1", "fd00:96::1"}
			w.slice("dual", discoveryv1.AddressTypeIPv6, 8080, pods(there, "fd00:2::7"))
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)
		},
		"pods that are not ready, and two slices with the same pod": func(w *world, local, remote string) {
			w.serve("rolling", "10.96.1.1", append(both, end{ip: anotherThere, node: there, not: true, notServing: true},
				end{ip: "10.244.2.9", node: there, term: true}))
			w.slice("rolling", discoveryv1.AddressTypeIPv4, 8080, []end{{ip: podThere, node: there, term: true}})
			w.slice("rolling", discoveryv1.AddressTypeFQDN, 8080, []end{{ip: "elsewhere.example"}})
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)
		},
		"all terminating, behind an ingress": func(w *world, _, remote string) {
			w.serve("ending", "10.96.1.1", []end{{ip: podThere, node: there, term: true}}, loadBalanced("203.0.113.9", 30081, 0))
			w.balance("10.96.1.1", 80, dsr, 0, remote)
			w.balance("203.0.113.9", 80, 0, viaExternal, remote)
		},
		"all terminating, and the node port's load balancer stayed": func(w *world, _, remote string) {
			w.serve("ending", "10.96.1.1", []end{{ip: podThere, node: there, term: true}}, loadBalanced("203.0.113.9", 30081, 0))
			w.balance("10.96.1.1", 80, dsr, 0, remote)
			w.balance("203.0.113.9", 80, 0, viaExternal, remote)
			w.balance("", 30081, 0, viaNodePort, remote)
		},
		"a pod on the host network of this node, and of another": func(w *world, _, _ string) {
			w.serve("hosts", "10.96.1.1", append(pods(here, "172.16.3.21"), pods(there, "172.16.3.22")...))
			for _, p := range w.Pods[len(w.Pods)-2:] {
				p.Spec.HostNetwork = true
			}
			w.balance("10.96.1.1", 80, dsr, 0, w.remote("172.16.3.22"))
		},
		"a backend without a node, which is a pod of this one": func(w *world, local, _ string) {
			w.serve("written", "10.96.1.1", []end{{ip: podHere}}, internalLocal)
			w.balance("10.96.1.1", 80, dsr, 0, local)
		},
		"an unready address whose remote endpoint is still there": func(w *world, _, _ string) {
			w.serve("unready", "10.96.1.1", []end{{ip: anotherThere, node: there, not: true, notServing: true}})
			w.remote(anotherThere)
		},
		"UDP and TCP of one port": func(w *world, local, remote string) {
			s := w.serve("dns", "10.96.1.1", both)
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 80})
			w.Slices[len(w.Slices)-1].Ports = append(w.Slices[len(w.Slices)-1].Ports,
				discoveryv1.EndpointPort{Name: ptr("dns"), Port: ptr(int32(53)), Protocol: ptr(corev1.ProtocolUDP)})
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)
			w.balancers["udp"] = object{"ID": "udp", "Flags": dsr, "FrontendVIPs": []string{"10.96.1.1"},
				"HostComputeEndpoints": []string{local, remote},
				"PortMappings":         []any{object{"Protocol": 17, "InternalPort": 53, "ExternalPort": 80}}}
		},
		"the target port of the Service before 1.34": func(w *world, local, remote string) {
			w.settings.Version = "v1.33.13"
			w.serve("old", "10.96.1.1", both).Spec.Ports[0].TargetPort.IntVal = 9090
			w.balance("10.96.1.1", 80, dsr, 0, local, remote)["PortMappings"].([]any)[0].(object)["InternalPort"] = 9090
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := sound()
			make(w, idOf("local "+podHere), idOf("remote "+podThere))
			if r := w.compare(t); len(r.Findings) > 0 {
				t.Errorf("%+v", r.Findings)
			}
		})
	}
}

// TestOverlay checks the source addresses of load balancers, and the nodes to which remote endpoints lead.
func TestOverlay(t *testing.T) {
	overlay := func() *world {
		w := newWorld()
		w.settings.SourceVIP, w.settings.Families = "10.244.1.2", []corev1.IPFamily{corev1.IPv4Protocol}
		w.network["Type"] = "Overlay"
		w.network["Policies"] = []any{object{"Type": "RemoteSubnetRoute", "Settings": object{"DestinationPrefix": "10.244.2.0/24",
			"ProviderAddress": "172.16.3.22"}}}
		provider := func(id, ip string) {
			w.endpoints[id]["Policies"] = []any{object{"Type": "ProviderAddress", "Settings": object{"ProviderAddress": ip}}}
		}
		w.local("10.244.1.2")
		remote, node := w.remote(podThere), w.remote("172.16.3.22")
		provider(remote, "172.16.3.22")
		provider(node, "172.16.3.22")
		vipEndpoint := w.remote(vip) // kube-proxy makes it with the MAC address of the host
		w.endpoints[vipEndpoint]["MacAddress"] = "00-15-5d-01-02-03"
		provider(vipEndpoint, "172.16.3.21")
		w.serve("plain", vip, pods(there, podThere))
		w.balance(vip, 80, dsr, 0, remote)["SourceVIP"] = "10.244.1.2"
		w.serve("node", "10.96.0.21", pods(there, "172.16.3.22"))
		w.Pods[len(w.Pods)-1].Spec.HostNetwork = true
		w.balance("10.96.0.21", 80, dsr, 0, node)["SourceVIP"] = "172.16.3.21"
		return w
	}
	if r := overlay().compare(t); len(r.Findings) > 0 {
		t.Errorf("a sound node: %+v", r.Findings)
	}
	w := overlay()
	for _, b := range w.balancers {
		b["SourceVIP"] = "10.244.1.99"
	}
	w.endpoints[idOf("remote "+podThere)]["Policies"] = []any{object{"Type": "ProviderAddress", "Settings": object{"ProviderAddress": "172.16.3.21"}}}
	w.Services[0].Spec.ClusterIP, w.Services[0].Spec.ClusterIPs = "10.96.0.50", []string{"10.96.0.50"}
	want := []brief{
		{kubeproxy.SourceVIP, "shop/node", "10.96.0.21:80/tcp"}, {kubeproxy.Missing, "shop/plain", "10.96.0.50:80/tcp"},
		{kubeproxy.Provider, "", podThere}, {kubeproxy.StaleRemote, "", vip}, {kubeproxy.Stale, "", vip + ":80/tcp"},
	}
	got := briefs(w.compare(t))
	sortBriefs(want)
	sortBriefs(got)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(brief{})); diff != "" {
		t.Error(diff)
	}
}

func sortBriefs(all []brief) {
	slices.SortFunc(all, func(a, b brief) int {
		return strings.Compare(string(a.kind)+a.service+a.at, string(b.kind)+b.service+b.at)
	})
}

func TestNoNetwork(t *testing.T) {
	w := sound()
	w.settings.Network = "flannel.4096"
	if got := briefs(w.compare(t)); !slices.Equal(got, []brief{{kubeproxy.NoNetwork, "", ""}}) {
		t.Errorf("%+v", got)
	}
}
