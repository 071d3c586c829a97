package kubeproxy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/platform"
)

// object is an HNS document of schema 2.
type object = map[string]any

// world is a cluster and the HNS of its Windows node win-1, written down by hand and not by the model: the documents have
// the fields that kube-proxy 1.36.3 sends (pkg/proxy/winkernel/hns.go, createEndpoint and getLoadBalancer).
type world struct {
	kubeproxy.Objects
	settings  kubeproxy.Settings
	endpoints map[string]object
	balancers map[string]object
	network   object
}

const networkID = "1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44"

func newWorld() *world {
	return &world{
		settings: kubeproxy.Settings{Node: "win-1", Version: "v1.36.3", Network: "cbr0", DSR: true,
			Families: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, NodeIP: netip.MustParseAddr("172.16.3.21")},
		endpoints: map[string]object{}, balancers: map[string]object{},
		network: object{"ID": networkID, "Name": "cbr0", "Type": "L2Bridge"},
		Objects: kubeproxy.Objects{Pods: []*corev1.Pod{}},
	}
}

func ptr[T any](v T) *T { return &v }

// end is a backend of a Service.
type end struct {
	ip   string
	node string // "": none
	not  bool   // not ready
	term bool   // terminating
	// notServing is set beside not, for a pod whose probe fails.
	notServing bool
}

func pods(node string, ips ...string) (all []end) {
	for _, ip := range ips {
		all = append(all, end{ip: ip, node: node})
	}
	return all
}

// serve adds a Service of port 80 with backends that listen on 8080, and their pods.
func (w *world) serve(name, vip string, ends []end, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{}}}
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: vip, ClusterIPs: []string{vip},
		Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)}}}
	for _, c := range change {
		c(s)
	}
	w.Services = append(w.Services, s)
	kind := discoveryv1.AddressTypeIPv4
	if netip.MustParseAddr(vip).Is6() {
		kind = discoveryv1.AddressTypeIPv6
	}
	w.slice(name, kind, 8080, ends)
	return s
}

func (w *world) slice(service string, kind discoveryv1.AddressType, port int32, ends []end) {
	slice := &discoveryv1.EndpointSlice{AddressType: kind, ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: fmt.Sprintf("%s-%d", service, len(w.Slices)), Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr("http"), Port: ptr(port), Protocol: ptr(corev1.ProtocolTCP)}}}
	for _, e := range ends {
		one := discoveryv1.Endpoint{Addresses: []string{e.ip}, Conditions: discoveryv1.EndpointConditions{Ready: ptr(!e.not && !e.term),
			Serving: ptr(!e.notServing), Terminating: ptr(e.term)}}
		if e.node != "" {
			one.NodeName = ptr(e.node)
			w.pod(fmt.Sprintf("%s-%s", service, e.ip), e.node, e.ip)
		}
		slice.Endpoints = append(slice.Endpoints, one)
	}
	w.Slices = append(w.Slices, slice)
}

func (w *world) pod(name, node, ip string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: ip}}}}
	w.Pods = append(w.Pods, p)
	return p
}

// local adds the endpoint of a pod of this node, as a CNI plugin makes it. It returns its ID.
func (w *world) local(ip string) string {
	id := idOf("local " + ip)
	w.endpoints[id] = object{"ID": id, "Name": "pod_cbr0", "HostComputeNetwork": networkID, "MacAddress": "00-15-5D-0A-0F-A7",
		"IpConfigurations": []any{object{"IpAddress": ip, "PrefixLength": 24}}}
	return id
}

// remote adds a remote endpoint, as kube-proxy makes it.
func (w *world) remote(ip string) string {
	id := idOf("remote " + ip)
	b := netip.MustParseAddr(ip).AsSlice()
	mac := fmt.Sprintf("02-11-%02X-%02X-%02X-%02X", b[0], b[1], b[2], b[3])
	if len(b) == 16 {
		mac = fmt.Sprintf("02-11-%02X-%02X-%02X-%02X", b[15], b[14], b[13], b[12])
	}
	w.endpoints[id] = object{"ID": id, "Name": "Ethernet", "HostComputeNetwork": networkID, "Flags": 1, "MacAddress": mac,
		"IpConfigurations": []any{object{"IpAddress": ip}}}
	return id
}

// balance adds a load balancer of port 80, and returns its document. vip is empty for a node port.
func (w *world) balance(vip string, port int, flags, mapping int, ids ...string) object {
	id := idOf(fmt.Sprintf("balancer %s %d %d %v", vip, port, flags, ids))
	o := object{"ID": id, "HostComputeEndpoints": ids,
		"PortMappings": []any{object{"Protocol": 6, "InternalPort": 8080, "ExternalPort": port, "Flags": mapping}}}
	if flags != 0 {
		o["Flags"] = flags
	}
	if vip != "" {
		o["FrontendVIPs"] = []string{vip}
	}
	w.balancers[id] = o
	return o
}

func (w *world) state(t testing.TB) hns.State {
	t.Helper()
	documents := map[platform.NetworkKind][][]byte{}
	put := func(kind platform.NetworkKind, o object) {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		documents[kind] = append(documents[kind], text)
	}
	put(platform.HNSNetworks, w.network)
	for _, id := range slices.Sorted(maps.Keys(w.endpoints)) {
		put(platform.HNSEndpoints, w.endpoints[id])
	}
	for _, id := range slices.Sorted(maps.Keys(w.balancers)) {
		put(platform.HNSLoadBalancers, w.balancers[id])
	}
	return hns.Parse(documents)
}

func (w *world) compare(t testing.TB) kubeproxy.Report {
	t.Helper()
	return kubeproxy.NewCluster(w.Objects).Compare(w.settings, w.state(t))
}

func idOf(text string) string {
	var sum [16]byte
	for i, c := range []byte(text) {
		sum[i%16] = sum[i%16]*31 + c + byte(i)
	}
	return fmt.Sprintf("%X-%X-%X-%X-%X", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:])
}

// brief is a finding without its texts.
type brief struct {
	kind    kubeproxy.Kind
	service string
	at      string
}

func briefs(r kubeproxy.Report) []brief {
	all := []brief{}
	for _, f := range r.Findings {
		all = append(all, brief{f.Kind, f.Service, f.At})
	}
	return all
}
