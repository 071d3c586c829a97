package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// inOwnNetwork runs a test once more in a process that has a network of its own, with
// root's rights in it, and passes the test if that process does. It reports whether the
// caller is that process.
func inOwnNetwork(t *testing.T) bool {
	t.Helper()
	const mark = "SWDT_TEST_IN_OWN_NETWORK"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	again := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	again.Env = append(os.Environ(), mark+"="+t.Name())
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := again.CombinedOutput()
	if err != nil {
		t.Fatalf("the test in a network namespace of its own: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

// elsewhere runs f in a network namespace on a thread of its own.
func elsewhere(namespace netns.NsHandle, f func() error) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := netns.Set(namespace); err != nil {
			ended <- err
			return
		}
		ended <- f()
	}()
	return <-ended
}

// station is a machine in a namespace of its own, on a bridge of the router, which is
// the namespace of this process.
type station struct {
	namespace netns.NsHandle
	address   netip.Addr
	bridge    string
}

// newStation puts a machine with an address on a bridge, whose first address is gateway.
func newStation(t *testing.T, bridge, address, gateway string) station {
	t.Helper()
	s := station{address: netip.MustParseAddr(address), bridge: bridge}
	made := make(chan error)
	go func() {
		runtime.LockOSThread()
		var err error
		s.namespace, err = netns.New()
		made <- err
	}()
	must(t, <-made)
	t.Cleanup(func() { must(t, s.namespace.Close()) })

	master, err := netlink.LinkByName(bridge)
	if isNoLink(err) {
		must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}))
		master, err = netlink.LinkByName(bridge)
		must(t, err)
		own, err := netlink.ParseAddr(gateway + "/24")
		must(t, err)
		must(t, netlink.AddrAdd(master, own))
		must(t, netlink.LinkSetUp(master))
	}
	must(t, err)
	port := fmt.Sprintf("p%d", s.address.As4()[3])
	must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: port}, PeerName: "eth0", PeerNamespace: netlink.NsFd(s.namespace),
	}))
	link, err := netlink.LinkByName(port)
	must(t, err)
	must(t, netlink.LinkSetMaster(link, master))
	must(t, netlink.LinkSetUp(link))
	must(t, elsewhere(s.namespace, func() error {
		eth, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		own, err := netlink.ParseAddr(address + "/24")
		if err != nil {
			return err
		}
		route := &netlink.Route{LinkIndex: eth.Attrs().Index, Gw: net.ParseIP(gateway)}
		return errors.Join(netlink.AddrAdd(eth, own), netlink.LinkSetUp(eth), netlink.RouteAdd(route))
	}))
	return s
}

// listen answers every connection to a port with the sender's address.
func (s station) listen(t *testing.T, port uint16) {
	t.Helper()
	var listener net.Listener
	must(t, elsewhere(s.namespace, func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(s.address, port).String())
		return err
	}))
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprint(conn, conn.RemoteAddr().(*net.TCPAddr).IP)
			_ = conn.Close()
		}
	}()
}

// dial returns the address that the other side sees.
func (s station) dial(to netip.AddrPort, timeout time.Duration) (seen string, err error) {
	err = elsewhere(s.namespace, func() error {
		conn, err := net.DialTimeout("tcp", to.String(), timeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		buffer := make([]byte, 64)
		n, err := conn.Read(buffer)
		seen = string(buffer[:n])
		return err
	})
	return seen, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheKernelAgrees compares verdicts with what the kernel does to real connections
// between a VM on one bridge and a container on another, or on the same.
func TestTheKernelAgrees(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600))
	vm := newStation(t, "virbr0", "192.168.122.50", "192.168.122.1")
	near := newStation(t, "br-kind", "172.18.0.250", "172.18.0.1")
	container := newStation(t, "br-kind", "172.18.0.2", "172.18.0.1")
	const port = 6443
	for _, s := range []station{vm, near, container} {
		s.listen(t, port)
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
				restore(t, "*"+table+"\nCOMMIT\n")
			}
			restore(t, rules)
			f, err := ReadFirewall(t.Context())
			must(t, err)
			for _, ends := range [][2]station{{vm, container}, {container, vm}, {near, container}} {
				from, to := ends[0], ends[1]
				v := f.Judge(Packet{In: from.bridge, Out: to.bridge, From: from.address, To: to.address, Protocol: "tcp", Port: port})
				if from.bridge == to.bridge && !FiltersBridges(Proc()) {
					v = Verdict{Passes: true}
				}
				if !v.Passes {
					dropped++
					if seen, err := from.dial(netip.AddrPortFrom(to.address, port), 300*time.Millisecond); err == nil {
						t.Errorf("%s to %s is judged %+v, but is connected, and is seen as %s", from.address, to.address, v, seen)
					}
					continue
				}
				passing++
				seen, err := from.dial(netip.AddrPortFrom(to.address, port), 20*time.Second)
				if err != nil {
					t.Errorf("%s to %s is judged %+v, but: %v", from.address, to.address, v, err)
					continue
				}
				if v.Hides != "" {
					hidden++
				}
				if isHidden := seen != from.address.String(); isHidden != (v.Hides != "") {
					t.Errorf("%s to %s is judged %+v, but is seen as %s", from.address, to.address, v, seen)
				}
			}
		})
	}
	if passing < 10 || dropped < 6 || hidden < 2 {
		t.Errorf("%d connections passed, %d were dropped, %d hidden: the rules test too little", passing, dropped, hidden)
	}
}

func restore(t *testing.T, rules string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "iptables-restore", "-w")
	command.Stdin = strings.NewReader(rules)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("iptables-restore: %v: %s\n%s", err, out, rules)
	}
}

func TestATapIsMadeOnceAndRemoved(t *testing.T) {
	if !inOwnNetwork(t) {
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
