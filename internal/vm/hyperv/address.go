package hyperv

import (
	"context"
	"net/netip"
	"strings"

	"github.com/swdt-dev/swdt/internal/node/powershell"
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
	var found struct {
		Adapters   powershell.List[struct{ IPAddresses powershell.List[string] }]
		Neighbours powershell.List[struct{ IPAddress string }]
	}
	mac := strings.ToUpper(strings.ReplaceAll(m.Network.MAC, ":", "-"))
	err = d.ask(ctx, "find the addresses", &found, powershell.AsJSON(map[string]powershell.Pipeline{
		"Adapters": {
			powershell.Call(`Hyper-V\Get-VMNetworkAdapter`, now.parameter()),
			powershell.Select(powershell.Of("IPAddresses", powershell.AsList)),
		},
		"Neighbours": {
			powershell.Call(`NetTCPIP\Get-NetNeighbor`, powershell.With("LinkLayerAddress", powershell.String(mac)),
				powershell.With("ErrorAction", powershell.String("SilentlyContinue"))),
			powershell.Select(powershell.Of("IPAddress", powershell.AsIs)),
		},
	}))
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
		add(one.IPAddress, "neighbour table")
	}
	for _, adapter := range found.Adapters {
		for _, address := range adapter.IPAddresses {
			add(address, "integration services")
		}
	}
	return all, nil
}
