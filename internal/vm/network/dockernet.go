package network

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// ErrNoDockerNetwork means that Docker has no network with the name.
var ErrNoDockerNetwork = errors.New("there is no such Docker network")

// DockerNetwork is a bridge network of Docker.
type DockerNetwork struct {
	Name    string
	Bridge  string // the interface on your machine
	Subnet  netip.Prefix
	Gateway netip.Addr
	// Range is the part of Subnet that Docker gives to containers. If Range is invalid, Docker
	// gives all of Subnet to containers.
	Range netip.Prefix
	// Made reports whether swdt has made the network.
	Made bool
	// Containers are the addresses that containers use, by the container's name.
	Containers map[string]netip.Addr
}

// Network asks Docker about a network. The error is ErrNoDockerNetwork if Docker has no such
// network.
func (d Docker) Network(ctx context.Context, name string) (DockerNetwork, error) {
	var answer dockerAnswer
	err := d.do(ctx, http.MethodGet, "/networks/"+url.PathEscape(name), nil, &answer)
	var refused *DockerError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return DockerNetwork{}, fmt.Errorf("%w: %q", ErrNoDockerNetwork, name)
	}
	if err != nil {
		return DockerNetwork{}, fmt.Errorf("ask Docker for network %q: %w", name, err)
	}
	return answer.network()
}

// Networks returns the bridge networks of Docker that have an IPv4 subnet, without their containers.
func (d Docker) Networks(ctx context.Context) (all []DockerNetwork, err error) {
	var answers []dockerAnswer
	if err := d.do(ctx, http.MethodGet, "/networks", nil, &answers); err != nil {
		return nil, fmt.Errorf("ask Docker for its networks: %w", err)
	}
	for _, answer := range answers {
		if n, err := answer.network(); err == nil { // skips networks that are no bridges with an IPv4 subnet
			all = append(all, n)
		}
	}
	return all, nil
}

// dockerAnswer is Docker's description of a network, in the form of its API.
type dockerAnswer struct {
	Name    string
	ID      string `json:"Id"`
	Driver  string
	Options map[string]string
	Labels  map[string]string
	IPAM    struct {
		Config []struct{ Subnet, IPRange, Gateway string }
	}
	Containers map[string]struct{ Name, IPv4Address string }
}

func (a dockerAnswer) network() (DockerNetwork, error) {
	if a.Driver != "bridge" {
		return DockerNetwork{}, fmt.Errorf("network %q of Docker is of kind %q, not a bridge", a.Name, a.Driver)
	}
	n := DockerNetwork{
		Name: a.Name, Bridge: a.Options["com.docker.network.bridge.name"], Containers: map[string]netip.Addr{},
		Made: a.Labels[madeLabel] != "",
	}
	if n.Bridge == "" && len(a.ID) >= 12 {
		n.Bridge = "br-" + a.ID[:12]
	}
	if err := validInterface(n.Bridge); err != nil {
		return DockerNetwork{}, fmt.Errorf("find the bridge of network %q of Docker: %w", a.Name, err)
	}
	for _, config := range a.IPAM.Config {
		if subnet, err := netip.ParsePrefix(config.Subnet); err == nil && subnet.Addr().Is4() {
			n.Subnet = subnet.Masked()
			n.Gateway, _ = netip.ParseAddr(config.Gateway) // Docker may omit both the gateway and the range
			n.Range, _ = netip.ParsePrefix(config.IPRange)
		}
	}
	if !n.Subnet.IsValid() {
		return DockerNetwork{}, fmt.Errorf("network %q of Docker has no IPv4 subnet", a.Name)
	}
	for _, container := range a.Containers {
		if address, err := netip.ParsePrefix(container.IPv4Address); err == nil {
			n.Containers[container.Name] = address.Addr()
		}
	}
	return n, nil
}

// ControlPlane returns the name and address of the container in which the API server of one of
// kind's clusters runs. ok is false if this container is not on the network.
func (n DockerNetwork) ControlPlane(cluster string) (name string, address netip.Addr, ok bool) {
	name = cluster + "-control-plane"
	address, ok = n.Containers[name]
	return name, address, ok
}

// FreeAddress returns the highest address of the subnet that is free in Docker's network and is not
// in the list of taken addresses. If possible, the address is outside of the range that Docker
// gives to containers. Docker itself gives a container the lowest free address.
func (n DockerNetwork) FreeAddress(taken []netip.Addr) (netip.Addr, error) {
	used := map[netip.Addr]bool{n.Gateway: true, n.Subnet.Addr(): true, broadcast(n.Subnet): true}
	for _, a := range n.Containers {
		used[a] = true
	}
	for _, a := range taken {
		used[a] = true
	}
	const most = 4096 // tries
	starts := []netip.Addr{broadcast(n.Subnet)}
	if n.Assigns(starts[0]) && n.Range.IsValid() {
		starts = append([]netip.Addr{n.Range.Masked().Addr()}, starts...) // search below the range first
	}
	for _, a := range starts {
		for range most {
			if a = a.Prev(); !n.Subnet.Contains(a) {
				break
			}
			if !used[a] {
				return a, nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("no address of %s is free in Docker's network %q", n.Subnet, n.Name)
}

// Assigns reports whether Docker itself may give an address to a container.
func (n DockerNetwork) Assigns(a netip.Addr) bool {
	return n.Subnet.Contains(a) && (!n.Range.IsValid() || n.Range.Contains(a))
}

// broadcast returns the last address of an IPv4 subnet.
func broadcast(subnet netip.Prefix) netip.Addr {
	bytes := subnet.Addr().As4()
	for bit := subnet.Bits(); bit < 32; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(bytes)
}

// validInterface checks a name as the kernel does, before it becomes part of a path.
func validInterface(name string) error {
	const longest = 15 // bytes
	if name == "" || name == "." || name == ".." || len(name) > longest ||
		strings.ContainsAny(name, "/: \t\n\v\f\r\x00") {
		return fmt.Errorf("%.40q is not the name of a network interface", name)
	}
	return nil
}
