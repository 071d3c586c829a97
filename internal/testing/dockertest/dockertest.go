// Package dockertest imitates Docker's engine for tests: at a Unix socket, it answers requests about
// networks as Docker does, but makes no containers and no bridges. The imitation is strict: a request
// that it does not know, or a field that Docker's API does not have, fails the test.
package dockertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Network is a network of the engine.
type Network struct {
	Name   string
	ID     string // 64 hexadecimal digits; empty: the engine derives the ID from the name
	Driver string // empty: bridge
	Bridge string // the option that names the interface; empty: the engine derives the name from the ID
	Subnet string // such as 172.18.0.0/16; "" for a network without IPv4
	Range  string // the part of Subnet for containers; empty: the whole Subnet
	// Gateway is your machine's address in the network; empty: the first address of Subnet.
	Gateway string
	Labels  map[string]string
	// Containers are the addresses of the containers, without prefix lengths, by the container's name.
	Containers map[string]string
}

// BridgeName returns the name of the network's interface.
func (n Network) BridgeName() string {
	if n.Bridge != "" {
		return n.Bridge
	}
	return "br-" + n.ID[:12]
}

func (n Network) completed() Network {
	if n.ID == "" {
		n.ID = fmt.Sprintf("%064x", n.Name)[:64]
	}
	if n.Driver == "" {
		n.Driver = "bridge"
	}
	if subnet, err := netip.ParsePrefix(n.Subnet); err == nil && n.Gateway == "" {
		n.Gateway = subnet.Masked().Addr().Next().String()
	}
	return n
}

// Engine is an imitation of Docker's engine.
type Engine struct {
	Socket string

	t        testing.TB
	made     func(Network)
	mu       sync.Mutex
	networks map[string]Network
	info     map[string]any
	noIPv6   bool
}

// Start starts an engine with networks. The engine ends with the test.
func Start(t testing.TB, networks ...Network) *Engine {
	t.Helper()
	folder, err := os.MkdirTemp("", "docker") // the path of a socket must be short; t.TempDir may be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	e := &Engine{Socket: filepath.Join(folder, "docker.sock"), t: t, networks: map[string]Network{}}
	for _, n := range networks {
		e.networks[n.Name] = n.completed()
	}
	listener, err := net.Listen("unix", e.Socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(e.serve)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return e
}

// Host returns the value of $DOCKER_HOST that selects the engine.
func (e *Engine) Host() string { return "unix://" + e.Socket }

// OnMake makes the engine call f with each network that the engine makes, before the engine answers
// the request. f may make the bridge.
func (e *Engine) OnMake(f func(Network)) { e.made = f }

// Describe sets the engine's answer to GET /info.
func (e *Engine) Describe(system string, securityOptions ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.info = map[string]any{"OperatingSystem": system, "SecurityOptions": securityOptions}
}

// RefuseIPv6 makes the engine refuse networks with IPv6, as Docker does on a machine without IPv6.
func (e *Engine) RefuseIPv6() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.noIPv6 = true
}

// Networks returns the networks by name.
func (e *Engine) Networks() map[string]Network {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.networks)
}

// Set adds a network, or replaces it.
func (e *Engine) Set(n Network) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.networks[n.Name] = n.completed()
}

func (e *Engine) serve(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name, one := strings.CutPrefix(r.URL.Path, "/networks/")
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/info":
		write(w, http.StatusOK, e.info)
	case r.Method == http.MethodGet && r.URL.Path == "/networks":
		var all []any
		for _, name := range slices.Sorted(maps.Keys(e.networks)) {
			n := e.networks[name]
			n.Containers = nil // Docker lists containers only in its answer about a single network
			all = append(all, n.document())
		}
		write(w, http.StatusOK, all)
	case r.Method == http.MethodPost && r.URL.Path == "/networks/create":
		e.create(w, r)
	case one && r.Method == http.MethodGet:
		if n, known := e.networks[name]; known {
			write(w, http.StatusOK, n.document())
			return
		}
		refuse(w, http.StatusNotFound, "network "+name+" not found")
	case one && r.Method == http.MethodDelete:
		e.remove(w, name)
	default:
		e.t.Errorf("the engine does not know %s %s", r.Method, r.URL.Path)
		refuse(w, http.StatusNotFound, "page not found")
	}
}

// create makes the network that a request describes.
func (e *Engine) create(w http.ResponseWriter, r *http.Request) {
	type pool struct{ Subnet, IPRange, Gateway string }
	var wanted struct {
		Name, Driver   string
		CheckDuplicate bool
		EnableIPv6     bool
		IPAM           struct {
			Driver string
			Config []pool
		}
		Options, Labels map[string]string
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil {
		e.t.Errorf("make a network: %v", err)
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if _, known := e.networks[wanted.Name]; known {
		refuse(w, http.StatusConflict, "network with name "+wanted.Name+" already exists")
		return
	}
	if wanted.EnableIPv6 && e.noIPv6 {
		refuse(w, http.StatusInternalServerError, "could not find an available, non-overlapping IPv6 address pool")
		return
	}
	n := Network{Name: wanted.Name, Driver: wanted.Driver, Labels: wanted.Labels,
		Bridge: wanted.Options["com.docker.network.bridge.name"]}
	for _, p := range wanted.IPAM.Config {
		if subnet, err := netip.ParsePrefix(p.Subnet); err == nil && subnet.Addr().Is4() {
			n.Subnet, n.Range, n.Gateway = p.Subnet, p.IPRange, p.Gateway
		}
	}
	n = n.completed()
	if e.made != nil {
		e.made(n)
	}
	e.networks[n.Name] = n
	write(w, http.StatusCreated, map[string]string{"Id": n.ID, "Warning": ""})
}

func (e *Engine) remove(w http.ResponseWriter, name string) {
	n, known := e.networks[name]
	switch {
	case !known:
		refuse(w, http.StatusNotFound, "network "+name+" not found")
	case len(n.Containers) > 0:
		refuse(w, http.StatusForbidden, "error while removing network: network "+name+" has active endpoints")
	default:
		delete(e.networks, name)
		w.WriteHeader(http.StatusNoContent)
	}
}

// document returns the engine's description of a network.
func (n Network) document() any {
	options := map[string]string{}
	if n.Bridge != "" {
		options["com.docker.network.bridge.name"] = n.Bridge
	}
	pools := []map[string]string{{"Subnet": "fc00:f853:ccd:e793::/64"}}
	if n.Subnet != "" {
		pool := map[string]string{"Subnet": n.Subnet, "Gateway": n.Gateway}
		if n.Range != "" {
			pool["IPRange"] = n.Range
		}
		pools = append(pools, pool)
	}
	containers := map[string]any{}
	for i, name := range slices.Sorted(maps.Keys(n.Containers)) {
		bits := "/16"
		if subnet, err := netip.ParsePrefix(n.Subnet); err == nil {
			bits = fmt.Sprintf("/%d", subnet.Bits())
		}
		containers[fmt.Sprintf("%064x", i+1)] = map[string]string{"Name": name, "IPv4Address": n.Containers[name] + bits}
	}
	return map[string]any{
		"Name": n.Name, "Id": n.ID, "Driver": n.Driver, "Scope": "local", "Options": options, "Labels": n.Labels,
		"IPAM": map[string]any{"Driver": "default", "Config": pools}, "Containers": containers,
	}
}

func write(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // a client that has disconnected needs no answer
}

func refuse(w http.ResponseWriter, status int, message string) {
	write(w, status, map[string]string{"message": message})
}
