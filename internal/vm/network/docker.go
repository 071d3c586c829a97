package network

import (
	"bytes"
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

// dockerSocket is the path at which Docker's engine answers by default. The engine answers only
// root and the members of the group docker.
const dockerSocket = "/var/run/docker.sock"

const (
	dockerTimeout     = 10 * time.Second
	largestDockerText = 4 << 20 // bytes of an answer
	largestComplaint  = 500     // bytes of an error
)

// madeLabel marks the networks that swdt has made.
const madeLabel = "dev.swdt.made"

// Docker is an engine of Docker, usually at a Unix socket of your machine.
type Docker struct {
	Socket string
	// Remote is the address of an engine that is not at a Unix socket; usually empty. swdt sends
	// such an engine no request.
	Remote string
}

// DockerAt returns the engine that a value of $DOCKER_HOST selects.
func DockerAt(host string) Docker {
	path, isSocket := strings.CutPrefix(host, "unix://")
	switch {
	case host == "":
		return Docker{Socket: dockerSocket}
	case isSocket:
		return Docker{Socket: path}
	}
	return Docker{Remote: host}
}

// Host returns the value of $DOCKER_HOST that selects the engine; empty for the default.
func (d Docker) Host() string {
	switch {
	case d.Remote != "":
		return d.Remote
	case d.Socket == dockerSocket:
		return ""
	}
	return "unix://" + d.Socket
}

// errRemote is the error of each request to an engine that is not at a Unix socket.
var errRemote = errors.New("$DOCKER_HOST names an engine on another machine; this VM needs a bridge on your machine")

// DockerError is an error that Docker's engine returns.
type DockerError struct {
	Status  int
	Message string
}

func (e *DockerError) Error() string {
	return fmt.Sprintf("Docker answers %d %s: %s", e.Status, http.StatusText(e.Status), e.Message)
}

// do sends a request with body as JSON, and decodes the reply into answer. Both body and answer may
// be nil. The error is a *DockerError if the engine returns an error.
func (d Docker) do(ctx context.Context, method, path string, body, answer any) error {
	if d.Remote != "" {
		return fmt.Errorf("%w: %.80q", errRemote, d.Remote)
	}
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.Socket)
	}}
	defer transport.CloseIdleConnections()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	limited := io.LimitReader(response.Body, largestDockerText)
	if response.StatusCode >= http.StatusBadRequest {
		var complaint struct{ Message string }
		_ = json.NewDecoder(limited).Decode(&complaint) // without a message, the error has the status alone
		return &DockerError{response.StatusCode, fmt.Sprintf("%.*s", largestComplaint, complaint.Message)}
	}
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(limited).Decode(answer); err != nil {
		return fmt.Errorf("read Docker's answer: %w", err)
	}
	return nil
}

// where returns the reason why the bridges of an engine are not on your machine; "" if the reason
// is not known.
func (d Docker) where(ctx context.Context) string {
	var info struct {
		OperatingSystem string
		SecurityOptions []string
	}
	if d.do(ctx, http.MethodGet, "/info", nil, &info) != nil {
		return ""
	}
	for _, option := range info.SecurityOptions {
		if strings.Contains(option, "name=rootless") {
			return "Docker runs rootless, in a network of its own"
		}
	}
	if strings.Contains(info.OperatingSystem, "Docker Desktop") {
		return "Docker Desktop runs its engine in a VM of its own"
	}
	return ""
}

// NewNetwork is a Docker network that swdt makes: half of its subnet is for containers, the
// other half for VMs.
type NewNetwork struct {
	Name   string
	Subnet netip.Prefix
}

// containers returns the lower half of the subnet.
func (n NewNetwork) containers() netip.Prefix {
	return netip.PrefixFrom(n.Subnet.Addr(), n.Subnet.Bits()+1)
}

// kindSubnet6 is the IPv6 subnet that kind itself gives to its network.
const kindSubnet6 = "fc00:f853:ccd:e793::/64"

// Command returns the docker command with the same effect as Make.
func (n NewNetwork) Command() string {
	return fmt.Sprintf("docker network create --driver bridge --ipv6 --subnet %s --subnet %s --ip-range %s "+
		"--opt com.docker.network.bridge.enable_ip_masquerade=true --label %s=true %s",
		kindSubnet6, n.Subnet, n.containers(), madeLabel, n.Name)
}

// Make makes a network as kind would make it, so that kind uses this network from then on. If
// Docker refuses a network with IPv6, Make makes one without IPv6.
func (d Docker) Make(ctx context.Context, n NewNetwork) error {
	type pool struct {
		Subnet  string
		IPRange string `json:",omitempty"`
	}
	pools := []pool{{Subnet: kindSubnet6}, {n.Subnet.String(), n.containers().String()}}
	body := map[string]any{
		"Name": n.Name, "CheckDuplicate": true, "Driver": "bridge", "EnableIPv6": true,
		"IPAM":    map[string]any{"Driver": "default", "Config": pools},
		"Options": map[string]string{"com.docker.network.bridge.enable_ip_masquerade": "true"},
		"Labels":  map[string]string{madeLabel: "true"},
	}
	err := d.do(ctx, http.MethodPost, "/networks/create", body, nil)
	var refused *DockerError
	if errors.As(err, &refused) && refused.Status != http.StatusConflict { // your machine may have no IPv6
		body["EnableIPv6"], body["IPAM"] = false, map[string]any{"Driver": "default", "Config": pools[1:]}
		err = d.do(ctx, http.MethodPost, "/networks/create", body, nil)
	}
	if err != nil {
		return fmt.Errorf("make network %q of Docker: %w", n.Name, err)
	}
	return nil
}

// Remove removes a network of Docker.
func (d Docker) Remove(ctx context.Context, name string) error {
	if err := d.do(ctx, http.MethodDelete, "/networks/"+url.PathEscape(name), nil, nil); err != nil {
		return fmt.Errorf("remove network %q of Docker: %w", name, err)
	}
	return nil
}

// freeSubnet returns a subnet for a new network. The subnet overlaps none of the other subnets,
// which are those of Docker's networks and of your machine's interfaces.
func freeSubnet(others []netip.Prefix) (netip.Prefix, error) {
	for second := byte(18); second < 32; second++ {
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, second, 0, 0}), 16)
		overlaps := false
		for _, other := range others {
			overlaps = overlaps || subnet.Overlaps(other)
		}
		if !overlaps {
			return subnet, nil
		}
	}
	return netip.Prefix{}, errors.New("your machine uses all of 172.18.0.0/16 to 172.31.0.0/16; " +
		"make the Docker network yourself: `docker network create --subnet … --ip-range …`")
}
