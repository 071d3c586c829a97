package hyperv

import (
	"context"
	"net/netip"
	"strings"

	"github.com/swdt-dev/swdt/internal/vm"
)

const (
	// sshPort is the port of the guest's SSH server.
	sshPort = 22
	// maxAddresses bounds the addresses that Addresses returns.
	maxAddresses = 64
)

// Addresses returns the configured address, the addresses that your machine has seen at the VM's
// MAC address, and the addresses that the guest's integration services report, in this order: the
// guest itself is trusted least.
func (d *Driver) Addresses(ctx context.Context, m vm.Machine) ([]vm.Address, error) {
	now, err := d.running(ctx, m)
	if err != nil {
		return nil, err
	}
	var found struct{ Adapters, Neighbours list[string] }
	mac := strings.ToUpper(strings.ReplaceAll(m.Network.MAC, ":", "-"))
	err = d.ask(ctx, "find the addresses", "addresses", arguments{"id": now.ID, "mac": mac}, &found)
	if err != nil {
		return nil, err
	}
	var all []vm.Address
	add := func(text, source string) {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" || !ip.IsGlobalUnicast() || len(all) >= maxAddresses {
			return
		}
		for _, known := range all {
			if known.IP == ip.Unmap() {
				return
			}
		}
		all = append(all, vm.Address{IP: ip.Unmap(), Source: source, Port: sshPort})
	}
	add(m.Network.Address, "configured")
	for _, one := range found.Neighbours {
		add(one, "neighbour table")
	}
	for _, one := range found.Adapters {
		add(one, "integration services")
	}
	return all, nil
}
