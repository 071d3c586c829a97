package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// DockerSocket is the path of the socket at which Docker's engine answers.
const DockerSocket = "/var/run/docker.sock"

// ErrNoDockerNetwork means that Docker has no network of that name.
var ErrNoDockerNetwork = errors.New("there is no such Docker network")

// DockerNetwork is a bridge network of Docker.
type DockerNetwork struct {
	Name    string
	Bridge  string // the interface on your machine
	Subnet  netip.Prefix
	Gateway netip.Addr
	// Range is the part of Subnet that Docker gives to containers; invalid: all of it.
	Range netip.Prefix
	// Containers are the addresses in use, by the container's name.
	Containers map[string]netip.Addr
}

const (
	dockerTimeout     = 10 * time.Second
	largestDockerText = 4 << 20 // bytes of an answer
)

// LookUp asks Docker's engine at a Unix socket about a network. Docker answers only root and
// the members of the group docker.
func LookUp(ctx context.Context, socket, name string) (DockerNetwork, error) {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/networks/"+url.PathEscape(name), nil)
	if err != nil {
		return DockerNetwork{}, fmt.Errorf("ask Docker for network %q: %w", name, err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return DockerNetwork{}, fmt.Errorf("ask Docker for network %q: %w", name, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return DockerNetwork{}, fmt.Errorf("%w: %q", ErrNoDockerNetwork, name)
	default:
		return DockerNetwork{}, fmt.Errorf("ask Docker for network %q: it answered %s", name, response.Status)
	}
	var answer dockerAnswer
	if err := json.NewDecoder(io.LimitReader(response.Body, largestDockerText)).Decode(&answer); err != nil {
		return DockerNetwork{}, fmt.Errorf("read Docker's answer about network %q: %w", name, err)
	}
	return answer.network()
}

// dockerAnswer is Docker's description of a network, in the form of its API.
type dockerAnswer struct {
	Name    string
	ID      string `json:"Id"`
	Driver  string
	Options map[string]string
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
			n.Gateway, _ = netip.ParseAddr(config.Gateway) // Docker may leave both out
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

// ControlPlane returns the name and address of the container in which kind's API server
// of a cluster runs.
func (n DockerNetwork) ControlPlane(cluster string) (name string, address netip.Addr, ok bool) {
	name = cluster + "-control-plane"
	address, ok = n.Containers[name]
	return name, address, ok
}

// FreeAddress returns the highest address of the subnet that is neither Docker's nor in
// taken. Docker itself assigns the lowest free address.
func (n DockerNetwork) FreeAddress(taken []netip.Addr) (netip.Addr, error) {
	used := map[netip.Addr]bool{n.Gateway: true, n.Subnet.Addr(): true}
	for _, a := range n.Containers {
		used[a] = true
	}
	for _, a := range taken {
		used[a] = true
	}
	const most = 4096 // tries
	a := broadcast(n.Subnet).Prev()
	for range most {
		if !n.Subnet.Contains(a) {
			break
		}
		if !used[a] {
			return a, nil
		}
		a = a.Prev()
	}
	return netip.Addr{}, fmt.Errorf("no address of %s is free in Docker's network %q", n.Subnet, n.Name)
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
