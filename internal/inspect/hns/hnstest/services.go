package hnstest

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/platform"
)

// port is a port of a Service.
type port struct {
	protocol           string
	port, target, node uint16
}

func numberOf(protocol string) int {
	if protocol == "udp" {
		return 17
	}
	return 6
}

// services adds the Services that every cluster has, a Service without endpoints, and further
// Services until the number of load balancers is the constant LoadBalancers.
func (f *Fixture) services(backends []backend) {
	dns := backends[Pods : Pods+2]
	f.service("default", "kubernetes", "10.96.0.1", backends[Pods+2:Pods+3], []port{{"tcp", 443, 6443, 0}})
	f.service("shop", "retired", "10.96.0.77", nil, []port{{"tcp", 80, 8080, 0}})
	f.service("kube-system", "kube-dns", "10.96.0.10", dns, []port{{"udp", 53, 53, 0}, {"tcp", 53, 53, 0},
		{"tcp", 9153, 9153, 0}})
	made := len(f.Objects[platform.HNSLoadBalancers])
	for i := 0; made < LoadBalancers; i++ {
		ports := []port{{"tcp", 80, 8080, 0}, {"tcp", 9090, 9090, 0}}
		if i%7 == 0 { // a Service that also has a node port, which adds one load balancer
			ports[0].node = uint16(30080 + i)
		}
		room := LoadBalancers - made
		if room < 3 {
			ports = []port{{"tcp", 80, 8080, 0}}
		}
		var to []backend
		for j := range 2 + i%3 {
			to = append(to, backends[(i*5+j*11)%len(backends)])
		}
		name := fmt.Sprintf("%s-%02d", []string{"web", "api", "cart", "search", "auth"}[i%5], i)
		f.service([]string{"shop", "platform"}[i%2], name, fmt.Sprintf("10.%d.%d.%d", 96+i%8, 20+i, 7*i%250+1),
			to, ports)
		made = len(f.Objects[platform.HNSLoadBalancers])
	}
}

// service adds a Service with a load balancer for each of its ports, as kube-proxy creates
// them.
func (f *Fixture) service(namespace, name, ip string, to []backend, ports []port) {
	ids := []string{}
	for _, b := range to {
		ids = append(ids, b.id)
	}
	known := hns.Service{Namespace: namespace, Name: name, IPs: []string{ip}}
	for _, p := range ports {
		f.balancer(name, []string{ip}, ids, p.protocol, p.port, p.target)
		if p.node != 0 {
			f.balancer(name, []string{}, ids, p.protocol, p.node, p.target)
		}
		known.Ports = append(known.Ports, hns.ServicePort{Protocol: p.protocol, Port: p.port, NodePort: p.node})
	}
	f.Known.Services = append(f.Known.Services, known)
}

func (f *Fixture) balancer(name string, vips, endpoints []string, protocol string, external, internal uint16) {
	id := ID(fmt.Sprintf("balancer %s %s %s %d", name, strings.Join(vips, ","), protocol, external))
	f.put(platform.HNSLoadBalancers, id, object{
		"ID": id, "HostComputeEndpoints": endpoints, "SourceVIP": sourceVIP, "FrontendVIPs": vips, "Flags": 1,
		"SchemaVersion": version(),
		"PortMappings":  []object{{"Protocol": numberOf(protocol), "InternalPort": internal, "ExternalPort": external}},
	})
}
