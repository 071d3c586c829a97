package join_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/memnet"
)

// newAddressLab returns a machine with adapters, and a cluster whose API server has an address in their network.
func newAddressLab(t *testing.T, apiServer string, adapters ...simulated.Adapter) *lab {
	t.Helper()
	network := &memnet.Network{}
	l := newNodeOf(t, newControlOn(t, network, apiserver.Options{NodeGrace: 3 * time.Second,
		Listener: network.ListenOn(netip.MustParseAddrPort(apiServer)),
		Names:    []string{netip.MustParseAddrPort(apiServer).Addr().String()}}), "win1")
	l.Machine.SetAdapters(adapters...)
	return l
}

// ethernet is the adapter that leads to the cluster; nat is Vagrant's first adapter, whose address all machines share.
func ethernet(addresses ...string) simulated.Adapter {
	a := simulated.Adapter{Name: "Ethernet 2"}
	for _, text := range addresses {
		a.Addresses = append(a.Addresses, netip.MustParsePrefix(text))
	}
	return a
}

func nat() simulated.Adapter {
	return simulated.Adapter{Name: "Ethernet", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.2.15/24")},
		Gateway: netip.MustParseAddr("10.0.2.2")}
}

// A node reports the address from which it reaches the API server, whatever its name is and however many adapters its
// machine has.
func TestTheNodeHasTheAddressTowardsTheAPIServer(t *testing.T) {
	for what, test := range map[string]struct {
		apiServer, nodeName, want string
		adapters                  []simulated.Adapter
	}{
		"another name than the computer's": {"192.168.122.1:6443", "win-1", "192.168.122.220",
			[]simulated.Adapter{ethernet("192.168.122.220/24")}},
		"an adapter before it": {"192.168.56.1:6443", "", "192.168.56.11",
			[]simulated.Adapter{nat(), ethernet("192.168.56.11/24")}},
		"another name, and an adapter before it": {"192.168.56.1:6443", "win-1", "192.168.56.11",
			[]simulated.Adapter{nat(), ethernet("192.168.56.11/24")}},
		"by the default route": {"203.0.113.5:6443", "win-1", "10.0.2.15",
			[]simulated.Adapter{ethernet("192.168.56.11/24"), nat()}},
		"IPv6": {"[fd00::1]:6443", "win-1", "fd00::11",
			[]simulated.Adapter{ethernet("192.168.56.11/24", "fd00::11/64")}},
	} {
		subtest(t, what, func(t *testing.T) {
			l := newAddressLab(t, test.apiServer, test.adapters...)
			if test.nodeName != "" {
				l.doc.Node.Metadata.Name = test.nodeName
				l.spec().Join.NodeName = test.nodeName
			}
			l.mustJoin()
			addresses := map[corev1.NodeAddressType]string{}
			for _, a := range l.isReady().Addresses {
				addresses[a.Type] = a.Address
			}
			if addresses[corev1.NodeInternalIP] != test.want || addresses[corev1.NodeHostName] == "" {
				t.Errorf("the Node's addresses are %v, want %s", addresses, test.want)
			}
			again, err := l.join()
			nothing(t, again, err)
		})
	}
}

// The machine got another address, as from DHCP: the next join shows and makes the change.
func TestAJoinFollowsAChangedAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newAddressLab(t, "192.168.122.1:6443", ethernet("192.168.122.220/24"))
		l.mustJoin()
		l.Machine.SetAdapters(ethernet("192.168.122.221/24"))
		results := l.mustJoin()
		if text := table(results); !strings.Contains(text, "--node-ip=192.168.122.220 → 192.168.122.221") {
			t.Errorf("the plan does not show the address:\n%s", text)
		}
		for _, a := range l.isReady().Addresses {
			if a.Type == corev1.NodeInternalIP && a.Address != "192.168.122.221" {
				t.Errorf("the Node has %s", a.Address)
			}
		}
	})
}

// The node file's address, and kubelet's own flag there, win over the one that swdt finds.
func TestTheAddressOfTheNodeFileWins(t *testing.T) {
	for what, set := range map[string]func(*lab){
		"nodeIP":    func(l *lab) { l.spec().Join.NodeIP = "10.0.2.15" },
		"extraArgs": func(l *lab) { l.spec().Kubelet.ExtraArgs = map[string]string{"node-ip": "10.0.2.15"} },
	} {
		subtest(t, what, func(t *testing.T) {
			l := newAddressLab(t, "192.168.56.1:6443", ethernet("192.168.56.11/24"), nat())
			set(l)
			l.mustJoin()
			for _, a := range l.isReady().Addresses {
				if a.Type == corev1.NodeInternalIP && a.Address != "10.0.2.15" {
					t.Errorf("the Node has %s", a.Address)
				}
			}
		})
	}
}

// A firewall between the control plane and the node breaks `kubectl logs` alone: the join warns and ends.
func TestAJoinWarnsIfTheAPIServerDoesNotReachKubelet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newAddressLab(t, "192.168.122.1:6443", ethernet("192.168.122.220/24"))
		l.control.SetKubeletSilent("win1", true)
		l.mustJoin()
		l.isReady()
		if warned := l.story.String(); !strings.Contains(warned, "no answer from kubelet at 192.168.122.220:10250") ||
			!strings.Contains(warned, "i/o timeout") {
			t.Errorf("the story:\n%s", warned)
		}
	})
}

// dualStack gives the cluster a control plane with addresses of both families, which the machine reaches by both.
func (l *lab) dualStack(addresses ...string) {
	l.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}
	for _, address := range addresses {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	nodes := l.cluster.Clientset().CoreV1().Nodes()
	if _, err := nodes.Create(l.t.Context(), node, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	if _, err := nodes.UpdateStatus(l.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// internalIPs returns the addresses of the machine's Node.
func (l *lab) internalIPs() (all []string) {
	l.t.Helper()
	for _, a := range l.isReady().Addresses {
		if a.Type == corev1.NodeInternalIP {
			all = append(all, a.Address)
		}
	}
	return all
}

// In a dual-stack cluster, the node has an address of each family: those from which it reaches the control plane.
func TestADualStackNodeHasAnAddressOfEachFamily(t *testing.T) {
	for what, test := range map[string]struct {
		adapters []simulated.Adapter
		control  []string
		set      func(*lab)
		want     []string
	}{
		"both": {[]simulated.Adapter{nat(), ethernet("192.168.56.11/24", "fd00::11/64")}, []string{"192.168.56.1", "fd00::1"}, nil,
			[]string{"192.168.56.11", "fd00::11"}},
		"a cluster of one family": {[]simulated.Adapter{ethernet("192.168.56.11/24", "fd00::11/64")}, []string{"192.168.56.1"}, nil,
			[]string{"192.168.56.11"}},
		"a machine of one family": {[]simulated.Adapter{ethernet("192.168.56.11/24")}, []string{"192.168.56.1", "fd00::1"}, nil,
			[]string{"192.168.56.11"}},
		"a cloud provider that kubelet does not allow it with": {[]simulated.Adapter{ethernet("192.168.56.11/24", "fd00::11/64")},
			[]string{"192.168.56.1", "fd00::1"}, func(l *lab) { l.spec().Kubelet.ExtraArgs = map[string]string{"cloud-provider": "vsphere"} },
			[]string{"192.168.56.11"}},
		"of the node file": {[]simulated.Adapter{ethernet("192.168.56.11/24", "fd00::11/64")}, []string{"192.168.56.1"},
			func(l *lab) { l.spec().Join.NodeIP = "fd00::11,192.168.56.11" }, []string{"fd00::11", "192.168.56.11"}},
	} {
		subtest(t, what, func(t *testing.T) {
			l := newAddressLab(t, "192.168.56.1:6443", test.adapters...)
			l.Machine.SetReach("[fd00::1]:6443", platform.Reached)
			l.dualStack(test.control...)
			if test.set != nil {
				test.set(l)
			}
			l.mustJoin()
			if is := l.internalIPs(); !slices.Equal(is, test.want) {
				t.Errorf("the Node's addresses are %v, want %v", is, test.want)
			}
			again, err := l.join()
			nothing(t, again, err)
		})
	}
}

// The adapters of HNS networks have addresses of pods' networks, which no other machine reaches. An L2 bridge moves the
// machine's own address to a vEthernet, where it stays the node's.
func TestAnAddressOfAnHNSNetworkIsNotTheNodes(t *testing.T) {
	endpoint := simulated.Adapter{Name: "vEthernet (cbr0_ep)", Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.57.2/24")}}
	switched := simulated.Adapter{Name: "vEthernet (nat)", Addresses: []netip.Prefix{netip.MustParsePrefix("172.24.0.1/20"),
		netip.MustParsePrefix("fd00:24::1/64")}, Gateway: netip.MustParseAddr("172.24.0.2")}
	bridged := ethernet("192.168.56.11/24", "fd00::11/64")
	bridged.Name = "vEthernet (Ethernet)"
	for what, test := range map[string]struct {
		apiServer string
		adapters  []simulated.Adapter
		want      []string
	}{
		"the API server is behind it": {"203.0.113.5:6443", []simulated.Adapter{switched, endpoint, bridged}, []string{"192.168.56.11"}},
		"beside it":                   {"192.168.56.1:6443", []simulated.Adapter{switched, endpoint, bridged}, []string{"192.168.56.11"}},
	} {
		subtest(t, what, func(t *testing.T) {
			l := newAddressLab(t, test.apiServer, test.adapters...)
			l.put(simulated.HNSFolder+`\networks\C08CB7B8-9B3C-408E-8E30-5E16A3AEB444.json`, `{"ID": "C08CB7B8-9B3C-408E-8E30-5E16A3AEB444",
				"Name": "nat", "Type": "NAT", "Ipams": [{"Type": "Static", "Subnets": [{"IpAddressPrefix": "172.24.0.0/20"}]}]}`)
			l.put(simulated.HNSFolder+`\networks\21AB4A0B-5B7B-4E7E-9B6F-1A2B3C4D5E6F.json`, `{"ID": "21AB4A0B-5B7B-4E7E-9B6F-1A2B3C4D5E6F",
				"Name": "azure", "Type": "L2Bridge", "Ipams": [{"Type": "Static", "Subnets": [{"IpAddressPrefix": "192.168.56.0/24"}]}]}`)
			l.put(simulated.HNSFolder+`\endpoints\7E4C1B2A-0F55-4B3C-8C5E-3F2A1B0C9D8E.json`, `{"ID": "7E4C1B2A-0F55-4B3C-8C5E-3F2A1B0C9D8E",
				"Name": "cbr0_ep", "HostComputeNetwork": "21AB4A0B-5B7B-4E7E-9B6F-1A2B3C4D5E6F",
				"IpConfigurations": [{"IpAddress": "192.168.57.2", "PrefixLength": 24}]}`)
			l.mustJoin()
			if is := l.internalIPs(); !slices.Equal(is, test.want) {
				t.Errorf("the Node's addresses are %v, want %v", is, test.want)
			}
		})
	}
}
