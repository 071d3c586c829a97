package kubeproxy

import "fmt"

// affected names the clients of a load balancer.
func (w wanted) affected(n *node) string {
	switch w.use {
	case NodePort:
		if n.NodeIP.IsValid() {
			return fmt.Sprintf("clients of %s:%d", n.NodeIP, w.nodePort)
		}
		return fmt.Sprintf("clients of node port %d of this node", w.nodePort)
	case ExternalIP, IngressIP:
		return "clients of " + w.at.String() + " that reach this node"
	case HealthCheck:
		return "the cloud's load balancer, which takes this node to be broken"
	}
	return "pods and programs on this node that connect to " + w.at.String()
}
