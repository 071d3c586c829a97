package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// isKinds reports whether a Docker network is the network on which kind makes clusters.
func isKinds(name string) bool {
	if other := os.Getenv("KIND_EXPERIMENTAL_DOCKER_NETWORK"); other != "" {
		return name == other
	}
	return name == "kind"
}

// checkAlias compares the control plane's address in the node file with the address of the control
// plane's container. Docker may give a container another address when the container starts again.
func (f *Findings) checkAlias(w Wanted) {
	if f.Place.Docker == nil || w.Alias.Name == "" {
		return
	}
	now, known := f.Place.Docker.Containers[w.Alias.Name]
	switch {
	case !known && f.Place.Subnet.Contains(w.Alias.Address):
		f.add("control-plane", finding.Warning,
			"containers of the network: "+names(f.Place.Docker),
			"no container "+w.Alias.Name+" runs on the VM's network",
			"start the cluster, or correct spec.kubernetes.join.controlPlaneAlias")
	case known && now != w.Alias.Address:
		f.add("control-plane", finding.Error,
			fmt.Sprintf("the container has %s, and spec.kubernetes.join.controlPlaneAlias.ip is %s", now, w.Alias.Address),
			"the API server's container has another address than before",
			fmt.Sprintf("write `ip: %s` into spec.kubernetes.join.controlPlaneAlias, then `swdt join` again", now))
	}
}

func names(n *DockerNetwork) string {
	if len(n.Containers) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(n.Containers)), ", ")
}

// mostPeers bounds the containers whose connections are checked.
const mostPeers = 50

// checkFirewall finds the rules that stop connections between the VM and the containers.
func (f *Findings) checkFirewall(ctx context.Context, tap string) {
	firewall, err := ReadFirewall(ctx, Proc())
	switch {
	case errors.Is(err, exec.ErrNotFound):
		f.add("firewall", finding.Info, err.Error(), "the firewall of this machine cannot be read",
			"install nftables or iptables, or ignore this if the machine has neither")
		return
	case err != nil:
		f.add("firewall", finding.Info, err.Error(),
			"the firewall of this machine is not checked completely, since reading it needs root's rights",
			"run the check once with sudo")
	}
	port := func(netip.Addr) string { return "" }
	if firewall.hasBridgeRules() {
		port = func(a netip.Addr) string { return portTowards(ctx, f.Place.Bridge, a) }
	}
	problems := firewall.Problems(f.connections(tap, port))
	f.Problems = append(f.Problems, problems...)
	if len(problems) == 0 && err == nil && FiltersBridges(Proc()) {
		f.add("br_netfilter", finding.Info, "net.bridge.bridge-nf-call-iptables is 1",
			"this machine's firewall also sees what passes between the VM and the containers; no rule stops it now",
			"run this check again after a change of the firewall")
	}
}

// connections returns the connections between the VM and the containers. It calls port to get the
// port of the bridge that leads to a container.
func (f *Findings) connections(tap string, port func(netip.Addr) string) (all []Connection) {
	bridge := f.Place.Bridge
	sides := Sides{VM: f.Address, VMInterface: bridge, VMPort: tap, PeerBridge: bridge}
	if f.Place.Docker != nil {
		containers := slices.Sorted(maps.Keys(f.Place.Docker.Containers))
		for _, name := range containers[:min(len(containers), mostPeers)] {
			sides.PeerName, sides.Peer = name, f.Place.Docker.Containers[name]
			sides.PeerPort = port(sides.Peer)
			sides.APIServerOf = strings.HasSuffix(name, "-control-plane")
			all = append(all, sides.Connections()...)
		}
	}
	if len(all) == 0 { // no container: judge an address that a node could have
		sides.PeerName, sides.Peer, sides.APIServerOf = "a node", f.Place.Subnet.Addr().Next().Next(), true
		all = sides.Connections()
	}
	return all
}
