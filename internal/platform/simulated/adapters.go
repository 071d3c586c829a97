package simulated

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Adapter is a network adapter of the machine.
type Adapter struct {
	Name      string         // Ethernet, vEthernet (nat)
	Addresses []netip.Prefix // with the sizes of their networks
	Gateway   netip.Addr     // zero: no default route goes through this adapter
}

// defaultAdapters returns the adapters of a machine without others.
func defaultAdapters() []Adapter {
	return []Adapter{{
		Name: "Ethernet", Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.122.220/24")},
		Gateway: netip.MustParseAddr("192.168.122.1"),
	}}
}

// SetAdapters replaces the adapters of the machine, in the order in which Windows lists their addresses.
func (m *Machine) SetAdapters(adapters ...Adapter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.around.adapters = slices.Clone(adapters)
}

// addresses returns the machine's addresses except loopback. Programs get them, in this order, for the machine's own
// name. (learn.microsoft.com, getaddrinfo: "If the pNodeName parameter contains the name of the local computer, then
// all permanent addresses for the computer … are returned")
func (m *Machine) addresses() (all []netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, adapter := range m.around.adapters {
		for _, address := range adapter.Addresses {
			all = append(all, address.Addr())
		}
	}
	return all
}

// hasAddress reports whether the machine has an address; the caller holds the lock.
func (m *Machine) hasAddress(ip netip.Addr) bool {
	return slices.ContainsFunc(m.around.adapters, func(a Adapter) bool {
		return slices.ContainsFunc(a.Addresses, func(p netip.Prefix) bool { return p.Addr() == ip })
	})
}

// sourceTo returns the address from which the machine connects to another one: that of the adapter in the same
// network, or of the default route. The zero address: there is no route.
func (m *Machine) sourceTo(destination netip.Addr) netip.Addr {
	if destination.IsLoopback() {
		return destination
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var byDefault netip.Addr
	for _, adapter := range m.around.adapters {
		for _, address := range adapter.Addresses {
			switch sameFamily := address.Addr().Is4() == destination.Is4(); {
			case address.Contains(destination):
				return address.Addr()
			case sameFamily && adapter.Gateway.IsValid() && !byDefault.IsValid():
				byDefault = address.Addr()
			}
		}
	}
	return byDefault
}

// sourceText returns sourceTo's address as text; "": there is none.
func (m *Machine) sourceText(destination string) string {
	to, err := netip.ParseAddr(destination)
	if err != nil {
		return ""
	}
	if from := m.sourceTo(to); from.IsValid() {
		return from.String()
	}
	return ""
}

// ipconfig returns the output of ipconfig.exe.
func (m *Machine) ipconfig() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	b.WriteString("\r\nWindows IP Configuration\r\n\r\n")
	for _, adapter := range m.around.adapters {
		fmt.Fprintf(&b, "\r\nEthernet adapter %s:\r\n\r\n", adapter.Name)
		for _, address := range adapter.Addresses {
			if address.Addr().Is6() {
				fmt.Fprintf(&b, "   IPv6 Address. . . . . . . . . . . : %s\r\n", address.Addr())
				continue
			}
			fmt.Fprintf(&b, "   IPv4 Address. . . . . . . . . . . : %s\r\n   Subnet Mask . . . . . . . . . . . : %s\r\n",
				address.Addr(), mask(address.Bits()))
		}
		gateway := ""
		if adapter.Gateway.IsValid() {
			gateway = adapter.Gateway.String()
		}
		fmt.Fprintf(&b, "   Default Gateway . . . . . . . . . : %s\r\n", gateway)
	}
	return b.String()
}

func mask(bits int) netip.Addr {
	all := ^uint32(0) << (32 - bits)
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)})
}
