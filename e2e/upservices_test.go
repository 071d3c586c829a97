//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// The flags and numbers of HNS (hnslib v0.1.2, hcn/hcnloadbalancer.go and hcnendpoint.go).
const (
	directReturn   = 1      // of a load balancer
	nodePortFlags  = 2 + 16 // local routed VIP and external VIP, of a port
	externalFlags  = 16     // external VIP, of a port
	byClient       = 2      // the distribution for session affinity
	remoteEndpoint = 1      // of an endpoint
)

// expectHNS waits until HNS has exactly the objects that kube-proxy's rules demand for all Services of the cluster, and
// checks who has made them.
func (n upNode) expectHNS(t *testing.T) {
	t.Helper()
	var is hnsObjects
	within(t, 2*time.Minute, "the objects of all Services in HNS", func() (err error) {
		wanted := n.wantedHNS(t)
		if is, err = readHNS(n.proxy().hns()); err != nil {
			return err
		}
		if diff := cmp.Diff(wanted, is.comparable()); diff != "" {
			return fmt.Errorf("objects of HNS (-want +got):\n%s", diff)
		}
		return nil
	})
	t.Logf("HNS has %d load balancers and %d endpoints, as demanded", len(is.balancers), len(is.endpoints))
	n.expectMakers(t, is)
}

// wantedHNS returns the objects that kube-proxy must have made: the rules are those of pkg/proxy/winkernel of
// k8s.io/kubernetes v1.36.3 (proxier.go, hns.go) for an overlay network, written down as a table:
//
//	load balancer  front end    backends          flags of the port  direct return
//	cluster IP     cluster IP   all               0                  on, by --enable-dsr
//	node port      none         all, or local *   18                 local *
//	external IP    the IP       all, or local *   16                 local *
//	ingress IP     the IP       all, or local *   16                 local *
//	* with externalTrafficPolicy Local
func (n upNode) wantedHNS(t *testing.T) (w wantedObjects) {
	t.Helper()
	var services corev1.ServiceList
	n.get(t, &services, "services")
	hostMAC, sourceVIP := macOf(t, upGateway), n.sourceVIP(t)
	w.endpoint(hnsEndpoint{MacAddress: hostMAC}, sourceVIP, "")
	for _, s := range services.Items {
		w.endpoint(hnsEndpoint{Flags: remoteEndpoint, MacAddress: hostMAC}, s.Spec.ClusterIP, upGateway)
		all, local := n.backendsOf(t, s)
		for _, ip := range all {
			if !slices.Contains(local, ip) {
				w.endpoint(hnsEndpoint{Flags: remoteEndpoint, MacAddress: macFor("02-11", ip)}, ip, upControlPlane)
			}
		}
		external, dsr := all, 0
		if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			external, dsr = local, directReturn
		}
		for _, p := range s.Spec.Ports {
			port := hnsPort{Protocol: map[corev1.Protocol]int{corev1.ProtocolTCP: 6, corev1.ProtocolUDP: 17}[p.Protocol],
				InternalPort: int(p.TargetPort.IntVal), ExternalPort: int(p.Port)}
			if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
				port.DistributionType = byClient
			}
			b := hnsBalancer{SourceVIP: sourceVIP, Flags: directReturn}
			if slices.Contains(all, upControlPlane) { // a backend is a node
				b.SourceVIP = upGateway
			}
			w.balancer(b, s.Spec.ClusterIP, port, all)
			b.Flags, port.Flags = dsr, externalFlags
			for _, ip := range s.Spec.ExternalIPs {
				w.balancer(b, ip, port, external)
			}
			for _, ingress := range s.Status.LoadBalancer.Ingress {
				w.balancer(b, ingress.IP, port, external)
			}
			if p.NodePort != 0 {
				port.Flags, port.ExternalPort = nodePortFlags, int(p.NodePort)
				w.balancer(b, "", port, external)
			}
		}
	}
	for _, pod := range n.backends(t, "os=windows") { // the lab's network plugin makes these
		w.endpoint(hnsEndpoint{Name: "pod", MacAddress: macFor("0E-2A", pod)}, pod, "")
	}
	w.sort()
	return w
}

// backendsOf returns the addresses of a Service's ready endpoints, and those on the Windows node.
func (n upNode) backendsOf(t *testing.T, s corev1.Service) (all, local []string) {
	t.Helper()
	var slicesOf discoveryv1.EndpointSliceList
	n.get(t, &slicesOf, "endpointslices", "-n", s.Namespace, "-l", discoveryv1.LabelServiceName+"="+s.Name)
	for _, slice := range slicesOf.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			all = append(all, e.Addresses...)
			if e.NodeName != nil && *e.NodeName == "wine-1" {
				local = append(local, e.Addresses...)
			}
		}
	}
	slices.Sort(all)
	return all, local
}

// backends returns the addresses of the ready pods of a label.
func (n upNode) backends(t *testing.T, label string) (ready []string) {
	t.Helper()
	var pods corev1.PodList
	n.get(t, &pods, "pods", "-n", "default", "-l", label)
	for _, p := range pods.Items {
		if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready = append(ready, p.Status.PodIP)
		}
	}
	return ready
}

// get reads objects with kubectl.
func (n upNode) get(t *testing.T, into any, args ...string) {
	t.Helper()
	if len(args) == 1 {
		args = append(args, "--all-namespaces")
	}
	if err := json.Unmarshal([]byte(n.kubectl(t, append([]string{"get", "-o", "json"}, args...)...)), into); err != nil {
		t.Fatal(err)
	}
}

// sourceVIP returns the address that the join has reserved for kube-proxy with host-local.
func (n upNode) sourceVIP(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(n.cluster.Prefix, "drive_c/var/lib/cni/networks/flannel.4096/10.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: host-local has the addresses %v", err, files)
	}
	return filepath.Base(files[0])
}

// macOf returns the MAC address of this machine's interface with an address, as Go prints it.
func macOf(t *testing.T, address string) string {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(addresses, func(a net.Addr) bool { return strings.HasPrefix(a.String(), address+"/") }) {
			return i.HardwareAddr.String()
		}
	}
	t.Fatalf("no interface has %s", address)
	return ""
}

// macFor returns the MAC address that is computed from an IPv4 address.
func macFor(prefix, ip string) string {
	b := net.ParseIP(ip).To4()
	return fmt.Sprintf("%s-%02x-%02x-%02x-%02x", prefix, b[0], b[1], b[2], b[3])
}

// wantedObjects are objects of HNS without their IDs: a load balancer names its backends by their addresses.
type wantedObjects struct {
	Endpoints []hnsEndpoint
	Balancers []hnsBalancer
}

// endpoint adds an endpoint with an address, unless it is there. provider is the node behind which a remote endpoint is.
func (w *wantedObjects) endpoint(e hnsEndpoint, ip, provider string) {
	if slices.ContainsFunc(w.Endpoints, func(o hnsEndpoint) bool { return o.address() == ip }) {
		return
	}
	e.IPConfigurations = []hnsAddress{{IPAddress: ip}}
	if provider != "" {
		e.Policies = []hnsPolicy{{Type: "ProviderAddress", Settings: hnsProvider{ProviderAddress: provider}}}
	}
	e.SchemaVersion.Major = 2
	w.Endpoints = append(w.Endpoints, e)
}

// balancer adds a load balancer, unless it has no backend.
func (w *wantedObjects) balancer(b hnsBalancer, vip string, port hnsPort, backends []string) {
	if len(backends) == 0 {
		return
	}
	if vip != "" {
		b.FrontendVIPs = []string{vip}
	}
	b.PortMappings, b.HostComputeEndpoints = []hnsPort{port}, backends
	b.SchemaVersion.Major = 2
	w.Balancers = append(w.Balancers, b)
}

func (w *wantedObjects) sort() {
	slices.SortFunc(w.Endpoints, func(a, b hnsEndpoint) int { return strings.Compare(a.address(), b.address()) })
	key := func(b hnsBalancer) string { return fmt.Sprint(b.FrontendVIPs, b.PortMappings) }
	slices.SortFunc(w.Balancers, func(a, b hnsBalancer) int { return strings.Compare(key(a), key(b)) })
}

// comparable returns the objects as wantedObjects. All endpoints must be of the only network.
func (o hnsObjects) comparable() (w wantedObjects) {
	for id, e := range o.endpoints {
		if e.ID != id || o.networks[e.HostComputeNetwork] == nil || len(o.networks) != 1 {
			e.Name = fmt.Sprintf("endpoint %s of network %s", e.ID, e.HostComputeNetwork)
		}
		e.ID, e.HostComputeNetwork = "", ""
		if strings.HasSuffix(e.Name, "_flannel.4096") {
			e.Name, e.Routes = "pod", nil
		}
		w.Endpoints = append(w.Endpoints, e)
	}
	for _, b := range o.balancers {
		b.ID = ""
		b.HostComputeEndpoints = slices.Clone(b.HostComputeEndpoints)
		for i, id := range b.HostComputeEndpoints {
			b.HostComputeEndpoints[i] = o.endpoints[id].address()
		}
		slices.Sort(b.HostComputeEndpoints)
		w.Balancers = append(w.Balancers, b)
	}
	w.sort()
	return w
}

// expectMakers checks that the process of the service kube-proxy has made all load balancers, and all endpoints but those
// of pods, which the network plugin has made, and that the network's program has made the network.
func (n upNode) expectMakers(t *testing.T, o hnsObjects) {
	t.Helper()
	proxy := fmt.Sprintf("kube-proxy-%d", n.proxyPID(t))
	made := n.proxy().makers(t)
	for id, b := range o.balancers {
		if made[id] != proxy {
			t.Errorf("load balancer %v %v was made by %q, want %s", b.FrontendVIPs, b.PortMappings, made[id], proxy)
		}
	}
	for id, e := range o.endpoints {
		if pod := strings.HasPrefix(made[id], "lab-network-"); made[id] != proxy && !pod || pod != (e.Name != "") {
			t.Errorf("endpoint %s was made by %q, want %s", e.address(), made[id], proxy)
		}
	}
	for id := range o.networks {
		if !strings.HasPrefix(made[id], "lab-flannel-") {
			t.Errorf("network %s was made by %q", id, made[id])
		}
	}
}

// proxyPID returns the PID of kube-proxy.exe in the service kube-proxy.
func (n upNode) proxyPID(t *testing.T) (pid uint32) {
	t.Helper()
	for _, s := range n.ps(t, exitDone).Services {
		for _, p := range s.Processes {
			if s.Name == "kube-proxy" && p.Name == "kube-proxy.exe" {
				pid = p.PID
			}
		}
	}
	if pid == 0 {
		t.Fatal("the service kube-proxy has no process kube-proxy.exe")
	}
	return pid
}

// makers returns the processes that made the objects of HNS, as PROGRAM-PID, by the IDs of the objects.
func (n proxyNode) makers(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(n.hns(), "makers", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			function, id, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.HasPrefix(function, "HcnCreate") {
				made[id] = strings.TrimSuffix(filepath.Base(file), ".txt")
			}
		}
	}
	return made
}
