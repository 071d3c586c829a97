package network

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// errLinuxOnly is returned on macOS and Windows. There, kind runs in a VM, so its bridge is in that
// VM and not on your machine.
var errLinuxOnly = errors.New("a VM on a bridge needs Linux: use network mode user here")

// errNoBridge is returned for a name that no bridge of your machine has.
var errNoBridge = errors.New("your machine has no bridge")

// BusyError reports a tap that a VM uses.
type BusyError struct{ Tap string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("tap device %s is in use by a VM that runs; `swdt vm stop` stops it", e.Tap)
}

// Place is a bridge of your machine with its subnet.
type Place struct {
	Bridge  string
	Subnet  netip.Prefix
	Gateway netip.Addr // your machine's own address on the bridge
	// Docker is the Docker network that the bridge belongs to; nil if the bridge is not Docker's or
	// Docker cannot be asked.
	Docker *DockerNetwork
	// DockerErr is the reason why Docker cannot be asked; nil if it can.
	DockerErr error
}

// ElsewhereError reports a Docker network whose bridge is not on your machine.
type ElsewhereError struct{ Network, Bridge, Why string }

func (e *ElsewhereError) Error() string {
	text := fmt.Sprintf("the bridge %s of Docker's network %q is not on your machine", e.Bridge, e.Network)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Find finds a bridge by its own name or by the name of its Docker network. The error is an
// *ElsewhereError if the bridge is not on your machine, and an ErrNoDockerNetwork if neither a
// bridge nor a Docker network has this name.
func Find(ctx context.Context, d Docker, name string) (Place, error) {
	direct, err := isBridge(name)
	switch {
	case err != nil:
		return Place{}, err
	case direct:
		place := Place{Bridge: name}
		place.Docker, place.DockerErr = d.networkOf(ctx, name)
		return place.completed()
	}
	n, err := d.Network(ctx, name)
	if err != nil {
		return Place{}, err
	}
	here, err := isBridge(n.Bridge)
	if err != nil {
		return Place{}, err
	}
	if !here {
		return Place{}, &ElsewhereError{n.Name, n.Bridge, d.where(ctx)}
	}
	return Place{Bridge: n.Bridge, Docker: &n}.completed()
}

// networkOf returns the Docker network that a bridge belongs to; nil if there is none.
func (d Docker) networkOf(ctx context.Context, bridge string) (*DockerNetwork, error) {
	all, err := d.Networks(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		if n.Bridge == bridge {
			n, err := d.Network(ctx, n.Name) // with its containers
			return &n, err
		}
	}
	return nil, nil
}

// Uplink finds the bridge that a tap is on. The error is errNoBridge if the tap is on no bridge.
func Uplink(tap string) (Place, error) {
	bridge, err := masterOf(tap)
	if err != nil {
		return Place{}, err
	}
	if bridge == "" {
		return Place{}, fmt.Errorf("%w that tap device %s is on", errNoBridge, tap)
	}
	return Place{Bridge: bridge}.completed()
}

// completed adds the subnet and the gateway, from your machine's own address on the bridge.
func (p Place) completed() (Place, error) {
	link, err := net.InterfaceByName(p.Bridge)
	if err != nil {
		return p, fmt.Errorf("look up bridge %s: %w", p.Bridge, err)
	}
	addresses, err := link.Addrs()
	if err != nil {
		return p, fmt.Errorf("list the addresses of bridge %s: %w", p.Bridge, err)
	}
	for _, address := range addresses {
		own, err := netip.ParsePrefix(address.String())
		if err == nil && own.Addr().Is4() && (p.Docker == nil || p.Docker.Subnet == own.Masked()) {
			p.Subnet, p.Gateway = own.Masked(), own.Addr()
			return p, nil
		}
	}
	return p, fmt.Errorf("bridge %s has no IPv4 address of your machine, so a VM on it has no gateway; "+
		"start the Docker network again, or give the bridge an address", p.Bridge)
}

// network returns the place in the form of a Docker network. Its containers are known only if
// Docker can be asked.
func (p Place) network() DockerNetwork {
	if p.Docker != nil {
		n := *p.Docker
		n.Gateway = p.Gateway
		return n
	}
	return DockerNetwork{Name: p.Bridge, Bridge: p.Bridge, Subnet: p.Subnet, Gateway: p.Gateway}
}

// mostTries bounds the addresses at which Free looks for a machine.
const mostTries = 8

// Free returns the highest address that is not in the list of taken addresses, that Docker has not
// given to a container, and at which no machine answers.
func (p Place) Free(ctx context.Context, taken []netip.Addr) (netip.Addr, error) {
	taken = slices.Clone(taken)
	for range mostTries {
		a, err := p.network().FreeAddress(taken)
		if err != nil {
			return a, err
		}
		if neighbour(ctx, p.Bridge, a) == nil {
			return a, nil
		}
		taken = append(taken, a)
	}
	return netip.Addr{}, fmt.Errorf("machines answer at the last %d addresses of %s; choose one in "+
		"spec.machine.network.address", mostTries, p.Subnet)
}

// Resolvers returns the IPv4 addresses of your machine's DNS servers that a VM can reach too.
func Resolvers() []netip.Addr {
	for _, path := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		servers := parseResolvers(file)
		_ = file.Close() // the file was only read
		if len(servers) > 0 {
			return servers
		}
	}
	return nil
}

const (
	mostResolvers    = 3 // as many as Linux uses
	largestResolvers = 64 << 10
)

// parseResolvers reads the lines "nameserver 10.0.0.1". It skips IPv6 addresses, and addresses that
// only your own machine reaches.
func parseResolvers(r io.Reader) (servers []netip.Addr) {
	lines := bufio.NewScanner(io.LimitReader(r, largestResolvers))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != "nameserver" || len(servers) == mostResolvers {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil && a.Is4() && a.IsGlobalUnicast() {
			servers = append(servers, a)
		}
	}
	return servers
}
