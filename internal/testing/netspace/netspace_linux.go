package netspace

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

// limit bounds the duration of a test that calls Enter.
const limit = 10 * time.Minute

// Enter runs the calling test again in a new process, which has a separate network namespace and
// root's rights in it. In the new process, Enter returns true, and the test goes on. In the first
// process, Enter waits for the new process, fails or skips the test if the new process does, and
// returns false.
func Enter(t *testing.T) bool {
	t.Helper()
	return enter(t, limit, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	})
}

// EnterAsRoot is like Enter, but for a test that needs root's rights on your machine, such as a
// test that runs Docker. most bounds the duration of the test. The new process also has a separate
// mount namespace, and its loopback interface is up.
func EnterAsRoot(t *testing.T, most time.Duration) bool {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("the test needs root: run it with sudo")
	}
	if !enter(t, most, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS}) {
		return false
	}
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	must(t, netlink.LinkSetUp(lo))
	return true
}

// enter is like Enter, with the attributes of the new process and the maximum duration of the test.
func enter(t *testing.T, most time.Duration, attributes *syscall.SysProcAttr) bool {
	t.Helper()
	const mark = "SWDT_TEST_IN_OWN_NETWORK"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	again := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	again.Env = append(os.Environ(), mark+"="+t.Name())
	again.SysProcAttr = attributes
	out, err := again.CombinedOutput()
	if err != nil {
		t.Fatalf("the test in a network namespace of its own: %v\n%s", err, out)
	}
	if text := string(out); strings.Contains(text, "--- SKIP") {
		t.Skipf("%s", text)
	}
	t.Logf("%s", out)
	return false
}

// Station is a simulated machine: a network namespace that is connected to a bridge. The bridge is
// in the namespace of this process, which acts as the router.
type Station struct {
	Namespace netns.NsHandle
	Address   netip.Prefix
	Bridge    string
	Port      string // the interface on the bridge that leads to the machine
}

// NewStation makes a station with an address and connects it to a bridge, whose address is gateway. If
// the bridge is missing, NewStation makes the bridge.
func NewStation(t *testing.T, bridge, address, gateway string) Station {
	t.Helper()
	s := Station{Address: netip.MustParsePrefix(address), Bridge: bridge}
	made := make(chan error)
	go func() {
		runtime.LockOSThread()
		var err error
		s.Namespace, err = netns.New()
		made <- err
	}()
	must(t, <-made)
	t.Cleanup(func() { must(t, s.Namespace.Close()) })

	master := MakeBridge(t, bridge, netip.PrefixFrom(netip.MustParseAddr(gateway), s.Address.Bits()))
	number := s.Address.Addr().As4()
	s.Port = fmt.Sprintf("p%d-%d", number[2], number[3])
	must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: s.Port}, PeerName: "eth0", PeerNamespace: netlink.NsFd(s.Namespace),
	}))
	link, err := netlink.LinkByName(s.Port)
	must(t, err)
	must(t, netlink.LinkSetMaster(link, master))
	must(t, netlink.LinkSetUp(link))
	must(t, s.Do(func() error {
		eth, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		own, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		route := &netlink.Route{LinkIndex: eth.Attrs().Index, Gw: net.ParseIP(gateway)}
		return errors.Join(netlink.AddrAdd(eth, own), netlink.LinkSetUp(eth), netlink.RouteAdd(route))
	}))
	return s
}

// MakeBridge returns the bridge of this name in this process's namespace. If the bridge is missing,
// MakeBridge makes one with the address.
func MakeBridge(t *testing.T, name string, address netip.Prefix) netlink.Link {
	t.Helper()
	master, err := netlink.LinkByName(name)
	if err == nil {
		return master
	}
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}))
	master, err = netlink.LinkByName(name)
	must(t, err)
	own, err := netlink.ParseAddr(address.String())
	must(t, err)
	must(t, netlink.AddrAdd(master, own))
	must(t, netlink.LinkSetUp(master))
	return master
}

// Do runs f in the station's namespace, on a separate thread.
func (s Station) Do(f func() error) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := netns.Set(s.Namespace); err != nil {
			ended <- err
			return
		}
		ended <- f()
	}()
	return <-ended
}

// Listen makes the station answer every TCP connection to a port with the IP address of the client,
// until the test ends.
func (s Station) Listen(t *testing.T, port uint16) {
	t.Helper()
	var listener net.Listener
	must(t, s.Do(func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(s.Address.Addr(), port).String())
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

// Read connects from the station to another machine, and returns the first bytes that the other machine
// sends. If the other machine is a station that listens, it sends the address of s.
func (s Station) Read(to netip.AddrPort, timeout time.Duration) (text string, err error) {
	err = s.Do(func() error {
		conn, err := net.DialTimeout("tcp", to.String(), timeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		buffer := make([]byte, 64)
		n, err := conn.Read(buffer)
		text = string(buffer[:n])
		return err
	})
	return text, err
}

// ReplaceRuleset replaces all tables of nftables. These include the tables of iptables if iptables is
// implemented with nftables. rules have the form that `nft list ruleset` prints.
func ReplaceRuleset(t *testing.T, rules string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "nft", "-f", "-")
	command.Stdin = strings.NewReader("flush ruleset\n" + rules)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v: %s\n%s", err, out, rules)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// AddAddress gives this machine's loopback interface one more address, such as one of TEST-NET-2 of RFC 5737, until the
// test ends. It skips the test without root's rights.
func AddAddress(t *testing.T, address string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it gives this machine an address")
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	more := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrReplace(lo, more); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netlink.AddrDel(lo, more); err != nil {
			t.Error(err)
		}
	})
}
