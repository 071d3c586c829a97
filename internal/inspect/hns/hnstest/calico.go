// Package hnstest builds the networks of a node for tests. The networks have a realistic size and
// are the same every time. They have the form of the Host Network Service's own documents, and come
// with the owners that the runtime and the cluster report.
package hnstest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/platform"
)

// Fixture has the networks of a node as documents, by kind and ID.
type Fixture struct {
	Objects map[platform.NetworkKind]map[string]json.RawMessage
	Known   hns.Known
}

// The numbers of objects on the node that Calico returns.
const (
	Pods          = 24 // on this node
	Remote        = 14 // number of endpoints of pods on other nodes
	LoadBalancers = 120
)

type object = map[string]any

// Calico returns a node of a cluster whose pod network is Calico with VXLAN. The node has three
// networks: External, which Calico creates to get a switch; the overlay network Calico; and
// Windows' own network nat. Two endpoints of the node belong to no pod: Calico's source VIP, and an
// endpoint that a removed pod left behind. The node has load balancers for 57 Services, one of
// which has no endpoints.
func Calico() Fixture {
	f := &Fixture{Objects: map[platform.NetworkKind]map[string]json.RawMessage{}}
	f.networks()
	var backends []backend
	for i := range Pods {
		backends = append(backends, f.pod(i))
	}
	for i := range Remote {
		backends = append(backends, f.remote(i))
	}
	f.own()
	f.services(backends)
	f.Known.Runtime, f.Known.Cluster = true, true
	return *f
}

// Documents returns the objects as the agent sends them.
func (f Fixture) Documents() map[platform.NetworkKind][][]byte {
	documents := map[platform.NetworkKind][][]byte{}
	for kind, objects := range f.Objects {
		for _, id := range slices.Sorted(maps.Keys(objects)) {
			documents[kind] = append(documents[kind], objects[id])
		}
	}
	return documents
}

// WriteTo writes the objects to KIND\ID.json below a folder. Simulated nodes and nodes under Wine
// read the objects from these files.
func (f Fixture) WriteTo(folder string) error {
	for kind, objects := range f.Objects {
		if err := os.MkdirAll(filepath.Join(folder, string(kind)), 0o755); err != nil {
			return err
		}
		for id, document := range objects {
			if err := os.WriteFile(filepath.Join(folder, string(kind), id+".json"), document, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Fixture) put(kind platform.NetworkKind, id string, o object) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // cannot happen: the value consists of maps, texts and numbers, which can be encoded
	}
	if f.Objects[kind] == nil {
		f.Objects[kind] = map[string]json.RawMessage{}
	}
	f.Objects[kind][id] = text
}

func policy(kind string, settings object) object { return object{"Type": kind, "Settings": settings} }

func ipams(prefix, gateway string, policies ...object) []object {
	return []object{{"Type": "Static", "Subnets": []object{{
		"IpAddressPrefix": prefix, "Policies": policies,
		"Routes": []object{{"NextHop": gateway, "DestinationPrefix": "0.0.0.0/0"}},
	}}}}
}

func version() object { return object{"Major": 2, "Minor": 0} }

const (
	nodeIP       = "172.16.3.21"
	podPrefix    = "192.168.71.64/26"
	podGateway   = "192.168.71.65"
	serviceCIDR  = "10.96.0.0/12"
	podCIDR      = "192.168.0.0/16"
	sourceVIP    = "192.168.71.66"
	routerMAC    = "00-15-5D-4C-11-20"
	remoteRouter = "66-3B-E1-0A-77-%02X"
)

func (f *Fixture) networks() {
	calico := []object{
		policy("NetAdapterName", object{"NetworkAdapterName": "Ethernet 2"}),
		policy("ProviderAddress", object{"ProviderAddress": nodeIP}),
		policy("DrMacAddress", object{"Address": routerMAC}),
		policy("HostRoute", nil),
		policy("VxlanPort", object{"Port": 4789}),
	}
	for i := range 3 { // the other nodes
		calico = append(calico, policy("RemoteSubnetRoute", object{
			"DestinationPrefix": fmt.Sprintf("192.168.%d.0/26", 100+i), "IsolationId": 4096,
			"ProviderAddress":             fmt.Sprintf("172.16.3.%d", 30+i),
			"DistributedRouterMacAddress": fmt.Sprintf(remoteRouter, i),
		}))
	}
	id := ID("network Calico")
	f.put(platform.HNSNetworks, id, object{
		"ID": id, "Name": "Calico", "Type": "Overlay", "Flags": 0, "SchemaVersion": version(), "Policies": calico,
		"Ipams": ipams(podPrefix, podGateway, policy("VSID", object{"IsolationId": 4096})),
		"Dns":   object{"ServerList": []string{"10.96.0.10"}, "Domain": "svc.cluster.local"},
	})
	id = ID("network External")
	f.put(platform.HNSNetworks, id, object{
		"ID": id, "Name": "External", "Type": "Overlay", "SchemaVersion": version(),
		"Ipams":    ipams("192.168.255.0/30", "192.168.255.1", policy("VSID", object{"IsolationId": 9999})),
		"Policies": []object{policy("NetAdapterName", object{"NetworkAdapterName": "Ethernet 2"})},
	})
	id = ID("network nat")
	f.put(platform.HNSNetworks, id, object{ // the service omits the type of NAT networks
		"ID": id, "Name": "nat", "SchemaVersion": version(), "Ipams": ipams("172.27.0.0/20", "172.27.0.1"),
	})
}

// backend is an endpoint to which a Service can send traffic.
type backend struct{ id string }

func podName(i int) (namespace, name string) {
	apps := []string{"web", "api", "cart", "search", "auth", "report", "billing", "cache"}
	app := apps[i%len(apps)]
	sum := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, "pod ", i)))
	return []string{"shop", "shop", "platform"}[i%3], fmt.Sprintf("%s-%s-%s", app, sum[:9], sum[10:15])
}

func (f *Fixture) pod(i int) backend {
	namespace, name := podName(i)
	sandbox := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, "sandbox ", i)))
	id, compartment := ID("endpoint "+name), ID("namespace "+name)
	ip := fmt.Sprintf("192.168.71.%d", 70+i)
	f.put(platform.HNSEndpoints, id, object{
		"ID": id, "Name": sandbox + "_Calico", "HostComputeNetwork": ID("network Calico"),
		"HostComputeNamespace": compartment,
		"IpConfigurations":     []object{{"IpAddress": ip, "PrefixLength": 26}},
		"MacAddress":           fmt.Sprintf("0E-2A-C0-A8-47-%02X", 70+i),
		"Routes":               []object{{"NextHop": podGateway, "DestinationPrefix": "0.0.0.0/0"}},
		"SchemaVersion":        version(),
		"Dns": object{"Domain": namespace + ".svc.cluster.local",
			"ServerList": []string{"10.96.0.10"}},
		"Policies": append([]object{
			policy("OutBoundNAT", object{"Exceptions": []string{serviceCIDR, podCIDR}}),
			policy("SDNRoute", object{"DestinationPrefix": serviceCIDR, "NeedEncap": true}),
		}, acls(i)...),
	})
	f.put(platform.HNSNamespaces, compartment, object{
		"ID": compartment, "NamespaceId": i + 2, "Type": "Host", "SchemaVersion": version(),
		"Resources": []object{{"Type": "Endpoint", "Data": object{"Id": id}},
			{"Type": "Container", "Data": object{"Id": sandbox}}},
	})
	pod := hns.Pod{Namespace: namespace, Name: name, Sandbox: sandbox, NetworkNamespace: strings.ToLower(compartment),
		IPs: []string{ip}}
	f.Known.Here = append(f.Known.Here, pod)
	f.Known.Everywhere = append(f.Known.Everywhere, hns.Pod{Namespace: namespace, Name: name, IPs: []string{ip}})
	return backend{id}
}

// acls returns the policies that Felix creates for a pod. One pod in four has a NetworkPolicy.
func acls(i int) []object {
	acl := func(action, direction, remote, protocols, ports string, priority int) object {
		return policy("ACL", object{
			"Action": action, "Direction": direction, "RemoteAddresses": remote, "Protocols": protocols,
			"LocalPorts": ports,
			"RuleType":   "Switch", "Priority": priority,
		})
	}
	if i%4 != 0 {
		return []object{acl("Allow", "In", "", "256", "", 1001), acl("Allow", "Out", "", "256", "", 1001)}
	}
	return []object{
		acl("Allow", "In", nodeIP+"/32", "256", "", 999),
		acl("Allow", "In", "192.168.71.70/32,192.168.71.73/32", "6", "8080", 1000),
		acl("Block", "In", "", "256", "", 1001),
		acl("Allow", "Out", "", "256", "", 1001),
	}
}

func (f *Fixture) remote(i int) backend {
	ip := fmt.Sprintf("192.168.%d.%d", 100+i%3, 10+i)
	id := ID("remote " + ip)
	f.put(platform.HNSEndpoints, id, object{
		"ID": id, "Name": "Ethernet", "HostComputeNetwork": ID("network Calico"), "Flags": 1,
		"SchemaVersion":    version(),
		"IpConfigurations": []object{{"IpAddress": ip, "PrefixLength": 26}},
		"MacAddress":       fmt.Sprintf("02-11-%02X-00-00-%02X", i%3, i),
		"Policies": []object{policy("ProviderAddress",
			object{"ProviderAddress": fmt.Sprintf("172.16.3.%d", 30+i%3)})},
	})
	namespace, name := podName(Pods + i)
	if i < 2 {
		namespace, name = "kube-system", fmt.Sprintf("coredns-7c65d6cfc9-%s", []string{"4xk2p", "w8zqm"}[i])
	}
	f.Known.Everywhere = append(f.Known.Everywhere, hns.Pod{Namespace: namespace, Name: name, IPs: []string{ip}})
	return backend{id}
}

// own adds the endpoints without a pod: Calico's source VIP, and an endpoint that a removed
// pod left behind.
func (f *Fixture) own() {
	for name, ip := range map[string]string{"Calico_ep": sourceVIP,
		strings.Repeat("9d3f", 16) + "_Calico": "192.168.71.120"} {
		id := ID("endpoint " + name)
		f.put(platform.HNSEndpoints, id, object{
			"ID": id, "Name": name, "HostComputeNetwork": ID("network Calico"), "SchemaVersion": version(),
			"IpConfigurations": []object{{"IpAddress": ip, "PrefixLength": 26}}, "MacAddress": "0E-2A-C0-A8-47-01",
			"Policies": []object{},
		})
	}
}

// ID returns a GUID that depends only on the text.
func ID(of string) string {
	b := sha256.Sum256([]byte(of))
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}
