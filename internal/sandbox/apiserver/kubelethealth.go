package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
// kubernetes v1.36.3, pkg/util/node/node.go; without an answer, that of k8s.io/apimachinery v0.36.3,
// pkg/util/proxy/transport.go.
func (c *Cluster) kubeletHealth(name string) (any, error) {
	node, ok := c.store.get(key{"nodes", "", name})
	if !ok {
		nodes, _ := c.resource("", "v1", "nodes")
		return nil, apierrors.NewNotFound(groupResource(nodes), name)
	}
	at, err := preferredAddress(node)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	c.mu.Lock()
	silent := c.silent[name]
	c.mu.Unlock()
	if silent {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf(
			"error trying to reach service: dial tcp %s:10250: i/o timeout", at))
	}
	return "ok", nil
}

// preferredAddress returns the address of the first of the types that kubeadm's flag for the API server names
// (cmd/kubeadm/app/phases/controlplane/manifests.go, kubelet-preferred-address-types).
func preferredAddress(node object) (string, error) {
	var addresses []corev1.NodeAddress
	list, _ := field(node, "status", "addresses").([]any)
	for _, one := range list {
		if address, ok := one.(object); ok {
			addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(text(address, "type")),
				Address: text(address, "address")})
		}
	}
	for _, preferred := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeHostName} {
		for _, address := range addresses {
			if address.Type == preferred {
				return address.Address, nil
			}
		}
	}
	return "", fmt.Errorf("no preferred addresses found; known addresses: %v", addresses)
}
