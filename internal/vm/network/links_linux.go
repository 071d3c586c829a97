package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/swdt-dev/swdt/internal/wait"
)

// CanMake reports whether this process may make taps and change bridges.
func CanMake() bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if mask, ok := strings.CutPrefix(line, "CapEff:"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && bits&(1<<unix.CAP_NET_ADMIN) != 0
		}
	}
	return false
}

// canOpenTaps returns an error if programs of this user cannot open taps, not even the taps that
// this user owns.
func canOpenTaps() error {
	device, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return device.Close()
}

// isBridge reports whether your machine has a bridge with this name.
func isBridge(name string) (bool, error) {
	if validInterface(name) != nil {
		return false, nil
	}
	_, err := findBridge(name)
	if errors.Is(err, errNoBridge) {
		return false, nil
	}
	return err == nil, err
}

// masterOf returns the bridge that a tap is on; "" if the tap is on no bridge.
func masterOf(tap string) (string, error) {
	link, err := netlink.LinkByName(tap)
	if err != nil {
		return "", fmt.Errorf("look up interface %s: %w", tap, err)
	}
	if link.Attrs().MasterIndex == 0 {
		return "", nil
	}
	master, err := netlink.LinkByIndex(link.Attrs().MasterIndex)
	if err != nil {
		return "", fmt.Errorf("look up the bridge of %s: %w", tap, err)
	}
	return master.Attrs().Name, nil
}

// portsOf returns the interfaces on a bridge.
func portsOf(bridge string) (names []string, err error) {
	master, err := findBridge(bridge)
	if err != nil {
		return nil, err
	}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	for _, link := range links {
		if link.Attrs().MasterIndex == master.Attrs().Index {
			names = append(names, link.Attrs().Name)
		}
	}
	return names, nil
}

const (
	// neighbourLimit is the time that a machine has to answer your machine's ARP request.
	neighbourLimit = 1500 * time.Millisecond
	// discardPort is a UDP port at which nothing listens.
	discardPort = 9
)

// neighbour returns the MAC address of the network card that answers at an address on a bridge; nil
// if no card answers.
func neighbour(ctx context.Context, bridge string, address netip.Addr) (card net.HardwareAddr) {
	link, err := findBridge(bridge)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, neighbourLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", netip.AddrPortFrom(address, discardPort).String())
	if err != nil {
		return nil
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0}); err != nil { // this makes the kernel send an ARP request
		return nil
	}
	_ = wait.Condition{
		Name: "the card at " + address.String(), Interval: 50 * time.Millisecond,
		Look: func(context.Context) error {
			all, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
			if err != nil {
				return wait.Stop(err)
			}
			for _, n := range all {
				if ip, ok := netip.AddrFromSlice(n.IP); !ok || ip.Unmap() != address {
					continue
				}
				switch {
				case n.State&unix.NUD_FAILED != 0:
					return wait.Stop(errNoAnswer)
				case n.State&(unix.NUD_REACHABLE|unix.NUD_PERMANENT) != 0:
					card = n.HardwareAddr
					return nil
				}
			}
			return errNoAnswer
		},
	}.Wait(ctx) // without an answer, card stays nil
	return card
}

var errNoAnswer = errors.New("it has not answered")
