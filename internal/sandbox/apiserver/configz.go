package apiserver

import (
	"encoding/json"
)

// configzPath is the path of a kubelet's running configuration, relative to the kubelet's node in the API.
const configzPath = "proxy/configz"

// Configured is implemented by kubelets that answer configz.
type Configured interface {
	// Config returns the configuration of a node's kubelet as JSON; nil if it runs without one.
	Config(node string) json.RawMessage
}

// configz is the answer of a node's kubelet: an object with one member, the component's name (k8s.io/component-base
// v0.36.3, configz/configz.go; k8s.io/kubernetes v1.36.3, cmd/kubelet/app/server.go, "kubeletconfig"). kubelet reports
// all fields, with its defaults; the stand-in reports those of its file alone.
func (c *Cluster) configz(name string) (any, error) {
	if _, err := c.kubeletHealth(name); err != nil { // as unreachable as its health
		return nil, err
	}
	config := json.RawMessage("{}")
	if k, ok := c.kubeletsOf().(Configured); ok {
		if own := k.Config(name); own != nil {
			config = own
		}
	}
	return map[string]json.RawMessage{"kubeletconfig": config}, nil
}
