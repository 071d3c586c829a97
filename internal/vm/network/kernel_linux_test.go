package network

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/swdt-dev/swdt/internal/testing/netspace"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheKernelAgrees compares verdicts with what the kernel does to real connections
// between a VM on one bridge and a container on another, or on the same.
func TestTheKernelAgrees(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600))
	vm := netspace.NewStation(t, "virbr0", "192.168.122.50/24", "192.168.122.1")
	near := netspace.NewStation(t, "br-kind", "172.18.0.250/24", "172.18.0.1")
	container := netspace.NewStation(t, "br-kind", "172.18.0.2/24", "172.18.0.1")
	const port = 6443
	for _, s := range []netspace.Station{vm, near, container} {
		s.Listen(t, port)
	}
	const forward = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:DOCKER-USER - [0:0]\n"
	const nat = "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
	passing, dropped, hidden := 0, 0, 0
	for name, rules := range map[string]string{
		"no rules":                      forward + "COMMIT\n",
		"Docker 28":                     docker,
		"Docker 28, and DOCKER-USER":    strings.Replace(docker, "-A FORWARD -j DOCKER-USER", "-A DOCKER-USER -i virbr0 -o br-kind -j ACCEPT\n-A FORWARD -j DOCKER-USER", 1),
		"libvirt rejects":               forward + "-A FORWARD -o virbr0 -j REJECT --reject-with icmp-port-unreachable\nCOMMIT\n",
		"only to a port":                forward + "-A FORWARD -d 172.18.0.0/16 -p tcp -m tcp --dport 6000:7000 -j DROP\nCOMMIT\n",
		"not to a port":                 forward + "-A FORWARD -p tcp -m multiport ! --dports 80,6443 -j DROP\nCOMMIT\n",
		"a chain returns":               forward + "-A DOCKER-USER -s 192.168.122.0/24 -j RETURN\n-A DOCKER-USER -j DROP\n-A FORWARD -j DOCKER-USER\nCOMMIT\n",
		"goto":                          forward + "-A FORWARD -i virbr0 -g DOCKER-USER\n-A FORWARD ! -i virbr0 -j DROP\nCOMMIT\n",
		"everything that is not new":    forward + "-A FORWARD -m conntrack --ctstate NEW -j DROP\nCOMMIT\n",
		"libvirt hides":                 nat + "-A POSTROUTING -s 192.168.122.0/24 ! -d 192.168.122.0/24 -j MASQUERADE\nCOMMIT\n",
		"libvirt hides, with exception": nat + "-A POSTROUTING -s 192.168.122.0/24 -d 172.18.0.0/16 -j RETURN\n-A POSTROUTING -s 192.168.122.0/24 -j MASQUERADE\nCOMMIT\n",
		"raw":                           "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING -d 172.18.0.2/32 ! -i br-kind -j DROP\nCOMMIT\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, table := range []string{"filter", "nat", "raw"} {
				netspace.Restore(t, "*"+table+"\nCOMMIT\n")
			}
			netspace.Restore(t, rules)
			f, err := ReadFirewall(t.Context())
			must(t, err)
			for _, ends := range [][2]netspace.Station{{vm, container}, {container, vm}, {near, container}} {
				from, to := ends[0], ends[1]
				v := f.Judge(Packet{In: from.Bridge, Out: to.Bridge, From: from.Address.Addr(), To: to.Address.Addr(), Protocol: "tcp", Port: port})
				if from.Bridge == to.Bridge && !FiltersBridges(Proc()) {
					v = Verdict{Passes: true}
				}
				if !v.Passes {
					dropped++
					if seen, err := from.Read(netip.AddrPortFrom(to.Address.Addr(), port), 300*time.Millisecond); err == nil {
						t.Errorf("%s to %s is judged %+v, but is connected, and is seen as %s", from.Address.Addr(), to.Address.Addr(), v, seen)
					}
					continue
				}
				passing++
				seen, err := from.Read(netip.AddrPortFrom(to.Address.Addr(), port), 20*time.Second)
				if err != nil {
					t.Errorf("%s to %s is judged %+v, but: %v", from.Address.Addr(), to.Address.Addr(), v, err)
					continue
				}
				if v.Hides != "" {
					hidden++
				}
				if isHidden := seen != from.Address.Addr().String(); isHidden != (v.Hides != "") {
					t.Errorf("%s to %s is judged %+v, but is seen as %s", from.Address.Addr(), to.Address.Addr(), v, seen)
				}
			}
		})
	}
	if passing < 10 || dropped < 6 || hidden < 2 {
		t.Errorf("%d connections passed, %d were dropped, %d hidden: the rules test too little", passing, dropped, hidden)
	}
}

func TestATapIsMadeOnceAndRemoved(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	tap := Tap{Name: "swdt-tap0", Bridge: "br-kind", Owner: 0}
	if err := tap.Make(); err == nil || !strings.Contains(err.Error(), "no bridge br-kind") {
		t.Errorf("without the bridge: %v", err)
	}
	for _, name := range []string{"br-kind", "br-other"} {
		must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}))
	}
	for range 2 {
		must(t, tap.Make())
		if missing, err := tap.Missing(); err != nil || len(missing) > 0 {
			t.Errorf("after Make: %v, %v", missing, err)
		}
	}
	moved := Tap{Name: tap.Name, Bridge: "br-other"}
	if missing, err := moved.Missing(); err != nil || len(missing) != 1 {
		t.Errorf("on another bridge: %q, %v", missing, err)
	}
	must(t, moved.Make())
	if err := (Tap{Name: "br-other", Bridge: "br-kind"}).Remove(); err == nil {
		t.Error("a bridge was removed as if it were a tap")
	}
	if err := (Tap{Name: tap.Name, Bridge: "br-kind", Owner: 12345}).Remove(); err == nil {
		t.Error("a tap of another user was removed")
	}
	if err := (Tap{Name: "../x", Bridge: "br-kind"}).Make(); err == nil {
		t.Error("a name with a slash was accepted")
	}
	for range 2 {
		must(t, tap.Remove())
	}
	if missing, err := tap.Missing(); err != nil || len(missing) != 1 {
		t.Errorf("after Remove: %q, %v", missing, err)
	}
}
