package join_test

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

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
