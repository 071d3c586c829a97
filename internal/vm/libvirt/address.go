package libvirt

import (
	"context"
	"net/netip"

	"github.com/digitalocean/go-libvirt"

	"github.com/swdt-dev/swdt/internal/vm"
)

// sshPort is the port of the guest's SSH server.
const sshPort = 22

const (
	// maxInterfaces bounds the interfaces that are read from each source. maxAddresses bounds the
	// addresses that are read from each interface, and all addresses of a domain. Further
	// interfaces and addresses are ignored.
	maxInterfaces = 64
	maxAddresses  = 64
)

// Addresses returns the configured address, the addresses that libvirt's DHCP server has given to
// the domain, the addresses that your machine's kernel has seen, and the addresses that the guest's
// agent reports, in this order: the guest itself is trusted least.
func (d *Driver) Addresses(ctx context.Context, m vm.Machine) ([]vm.Address, error) {
	return running(ctx, m, answerLimit, func(c *client, domain libvirt.Domain, _ record) ([]vm.Address, error) {
		described, err := c.describe(domain)
		if err != nil {
			return nil, err
		}
		var all []vm.Address
		add := func(ip netip.Addr, source string) {
			for _, known := range all {
				if known.IP == ip {
					return
				}
			}
			if len(all) < maxAddresses {
				all = append(all, vm.Address{IP: ip, Source: source, Port: sshPort})
			}
		}
		if ip, err := netip.ParseAddr(m.Network.Address); err == nil {
			add(ip, "configured")
		}
		for _, source := range []struct {
			libvirt libvirt.DomainInterfaceAddressesSource
			name    string
		}{
			{libvirt.DomainInterfaceAddressesSrcLease, "DHCP lease"},
			{libvirt.DomainInterfaceAddressesSrcArp, "neighbour table"},
			{libvirt.DomainInterfaceAddressesSrcAgent, "guest agent"},
		} {
			interfaces, err := c.DomainInterfaceAddresses(domain, uint32(source.libvirt), 0)
			if err != nil {
				continue // for example, the guest has no agent
			}
			for _, ip := range addressesOf(interfaces, described.hasAddress) {
				add(ip, source.name)
			}
		}
		return all, nil
	})
}

// addressesOf returns the global unicast addresses of those interfaces that have one of the
// domain's MAC addresses. A guest's agent also reports interfaces that the guest itself has made;
// addressesOf skips these.
func addressesOf(interfaces []libvirt.DomainInterface, known func(mac string) bool) (all []netip.Addr) {
	for _, nic := range interfaces[:min(len(interfaces), maxInterfaces)] {
		if len(nic.Hwaddr) == 0 || !known(nic.Hwaddr[0]) {
			continue
		}
		for _, address := range nic.Addrs[:min(len(nic.Addrs), maxAddresses)] {
			ip, err := netip.ParseAddr(address.Addr)
			if err == nil && ip.Zone() == "" && ip.IsGlobalUnicast() {
				all = append(all, ip.Unmap())
			}
		}
	}
	return all
}
