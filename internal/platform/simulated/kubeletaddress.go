package simulated

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// addresses returns the addresses that kubelet reports for its node: those of --node-ip, or the first usable address of
// the node's name, IPv4 before IPv6. On Windows, kubelet's last way, the adapter of the default route, never works, since
// it reads /proc/net/route. Without an address, kubelet leaves the addresses of the Node as they are, and goes on.
// --node-ip has one address, or one of each family (kubernetes v1.36.3, pkg/kubelet/nodestatus/setters.go NodeAddress,
// pkg/kubelet/kubelet_node_status.go validateNodeIP, staging/src/k8s.io/apimachinery/pkg/util/net/interface.go;
// component-helpers v0.36.3, node/util/ips.go parseNodeIP)
func (k *kubeletNode) addresses() ([]netip.Addr, error) {
	if flag := k.c.flag("--node-ip"); flag != "" {
		all, err := parseNodeIPs(flag)
		if err != nil {
			return nil, err
		}
		for _, ip := range all {
			if err := k.m.validateNodeIP(ip); err != nil {
				return nil, fmt.Errorf("failed to validate nodeIP: %w", err)
			}
		}
		return all, nil
	}
	ip, err := k.addressOfName()
	if err != nil {
		return nil, err
	}
	return []netip.Addr{ip}, nil
}

// parseNodeIPs reads --node-ip. kubelet drops what is no address.
func parseNodeIPs(flag string) (all []netip.Addr, err error) {
	for text := range strings.SplitSeq(flag, ",") {
		if ip, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil {
			all = append(all, ip)
		}
	}
	if len(all) > 2 || len(all) == 2 && all[0].Is4() == all[1].Is4() {
		return nil, errors.New("must contain either a single IP or a dual-stack pair of IPs")
	}
	return all, nil
}

func (k *kubeletNode) addressOfName() (netip.Addr, error) {
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
