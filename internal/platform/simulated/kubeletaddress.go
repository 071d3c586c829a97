package simulated

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// address returns the address that kubelet reports for its node: --node-ip, or the first usable address of the
// node's name, IPv4 before IPv6. On Windows, kubelet's last way, the adapter of the default route, never works, since
// it reads /proc/net/route. Without an address, kubelet leaves the addresses of the Node as they are, and goes on.
// (kubernetes v1.36.3, pkg/kubelet/nodestatus/setters.go NodeAddress, pkg/kubelet/kubelet_node_status.go
// validateNodeIP, staging/src/k8s.io/apimachinery/pkg/util/net/interface.go)
func (k *kubeletNode) address() (netip.Addr, error) {
	if flag := k.c.flag("--node-ip"); flag != "" {
		ip, err := netip.ParseAddr(flag)
		if err == nil {
			err = k.m.validateNodeIP(ip)
		}
		if err != nil {
			return netip.Addr{}, fmt.Errorf("failed to validate nodeIP: %w", err)
		}
		return ip, nil
	}
	found, _ := k.m.lookup(k.name)
	var sixth netip.Addr
	for _, text := range found {
		ip, err := netip.ParseAddr(text)
		switch {
		case err != nil || k.m.validateNodeIP(ip) != nil:
		case ip.Is4():
			return ip, nil
		case !sixth.IsValid():
			sixth = ip
		}
	}
	if !sixth.IsValid() {
		return sixth, fmt.Errorf("can't get ip address of node %s. error: open /proc/net/route: The system cannot find "+
			"the path specified", k.name)
	}
	return sixth, nil
}

// validateNodeIP refuses an address that kubelet refuses.
func (m *Machine) validateNodeIP(ip netip.Addr) error {
	switch {
	case ip.IsLoopback():
		return errors.New("nodeIP can't be loopback address")
	case ip.IsMulticast():
		return errors.New("nodeIP can't be a multicast address")
	case ip.IsLinkLocalUnicast():
		return errors.New("nodeIP can't be a link-local unicast address")
	case ip.IsUnspecified():
		return errors.New("nodeIP can't be an all zeros address")
	case !slices.Contains(m.addresses(), ip):
		return fmt.Errorf("node IP: %q not found in the host's network interfaces", ip)
	}
	return nil
}
