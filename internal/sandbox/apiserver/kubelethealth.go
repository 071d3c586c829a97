package apiserver

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// healthPath is the path of a kubelet's health, relative to the kubelet's node in the API.
const healthPath = "proxy/healthz"

// SetKubeletSilent makes a node's kubelet not answer the API server, as behind a firewall, or answer again.
func (c *Cluster) SetKubeletSilent(node string, silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent == nil {
		c.silent = map[string]bool{}
	}
	c.silent[node] = silent
}

// kubeletHealth is the answer of a node's kubelet. Without an address of the node, the API server's error is that of
// kubernetes v1.36.3, pkg/util/node/node.go; without an answer, that of apimachinery's pkg/util/proxy.
func (c *Cluster) kubeletHealth(name string) (any, error) {
	node, ok := c.store.get(key{"nodes", "", name})
	if !ok {
		nodes, _ := c.resource("", "v1", "nodes")
		return nil, apierrors.NewNotFound(groupResource(nodes), name)
	}
	status, _ := node["status"].(object)
	addresses, _ := status["addresses"].([]any)
	internal := ""
	for _, one := range addresses {
		if address, _ := one.(object); text(address, "type") == "InternalIP" {
			internal = text(address, "address")
		}
	}
	c.mu.Lock()
	silent := c.silent[name]
	c.mu.Unlock()
	switch {
	case internal == "":
		return nil, apierrors.NewInternalError(errors.New("no preferred addresses found; known addresses: []"))
	case silent:
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf(
			"error trying to reach service: dial tcp %s:10250: i/o timeout", internal))
	}
	return "ok", nil
}
