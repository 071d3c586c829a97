package criproxy

import (
	"net"
	"strings"

	"github.com/swdt-dev/swdt/internal/fleet"
)

// Endpoints is the result of `swdt cri proxy`.
type Endpoints struct {
	Nodes []NodeEndpoint `json:"nodes"`
}

// NodeEndpoint is the address of the relayed runtime of one node.
type NodeEndpoint struct {
	fleet.Outcome
	Endpoint string `json:"endpoint"` // unix:///PATH or tcp://127.0.0.1:PORT; "" if the node failed
}

// NewNodeEndpoint returns the result for a node whose proxy uses the listener. If err is not nil,
// the node has failed, and the listener is not used.
func NewNodeEndpoint(name string, listener net.Listener, err error) NodeEndpoint {
	e := NodeEndpoint{Outcome: fleet.NewOutcome(name, fleet.OK, err)}
	if err == nil {
		e.Endpoint = Endpoint(listener)
	}
	return e
}

// Environment is the result of `swdt cri env`.
type Environment struct {
	Nodes []NodeEnvironment `json:"nodes"` // always one node
}

// NodeEnvironment has the variables for clients of a node's proxy.
type NodeEnvironment struct {
	fleet.Outcome
	Variables map[string]string `json:"variables"`
}

// NewEnvironment returns the result for a node whose proxy has the given endpoint.
func NewEnvironment(name, endpoint string) Environment {
	node := NodeEnvironment{Outcome: fleet.NewOutcome(name, fleet.OK, nil), Variables: map[string]string{}}
	for _, v := range Variables(endpoint) {
		node.Variables[v.Name] = v.Value
	}
	return Environment{Nodes: []NodeEnvironment{node}}
}

// Variable is a variable of the environment.
type Variable struct{ Name, Value string }

// Variables returns the variables in which crictl and ctr look for their runtime.
func Variables(endpoint string) []Variable {
	all := []Variable{{"CONTAINER_RUNTIME_ENDPOINT", endpoint}, {"IMAGE_SERVICE_ENDPOINT", endpoint}}
	if path, socket := strings.CutPrefix(endpoint, "unix://"); socket {
		all = append(all, Variable{"CONTAINERD_ADDRESS", path})
	}
	return all
}
