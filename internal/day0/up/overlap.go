package up

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
)

// userNetwork is the network that QEMU gives to a VM in the network mode user.
const userNetwork = "10.0.2.0/24"

// addressProblems returns the problems of nodes and VMs with addresses in the range of the pods or of
// the Services: packets to such an address would go to the pod network. It does not resolve host names.
func addressProblems(doc config.ClusterDocument, documents []config.Document) (problems []config.Problem) {
	network := doc.Cluster.Spec.Network
	for _, document := range documents {
		problems = append(problems, userNetworkProblems(network, document)...)
		for _, found := range addresses(document) {
			for _, subnet := range []string{network.PodSubnet, network.ServiceSubnet} {
				// Validation has already reported invalid ranges. A range that the document leaves out is "".
				if taken, err := netip.ParsePrefix(subnet); err == nil && taken.Contains(found.address) {
					problems = append(problems, document.Problem(found.field,
						fmt.Sprintf("%s is in %s, a range of the cluster's pods or Services", found.address, subnet),
						otherRange))
				}
			}
		}
	}
	return problems
}

// otherRange is the remedy for an address that belongs both to a node and to the cluster.
const otherRange = "choose another range in spec.network of the cluster's document"

// userNetworkProblems returns the problems of a VM that is in QEMU's own network.
func userNetworkProblems(network v1alpha1.ClusterNetwork, document config.Document) (problems []config.Problem) {
	machine := document.Node.Spec.Machine
	if machine == nil || machine.Driver != v1alpha1.DefaultMachineDriver || machine.Network.Mode != "user" {
		return nil
	}
	if !machine.Network.Outbound {
		problems = append(problems, document.Problem("spec.machine.network.outbound",
			"is not set, so the VM cannot reach the API server", "write outbound: true, or use mode: bridge"))
	}
	own := netip.MustParsePrefix(userNetwork)
	for _, subnet := range []string{network.PodSubnet, network.ServiceSubnet} {
		if taken, err := netip.ParsePrefix(subnet); err == nil && taken.Overlaps(own) {
			problems = append(problems, document.Problem("spec.machine.network.mode",
				fmt.Sprintf("is user, whose network %s overlaps %s, a range of the cluster's pods or Services", own, subnet),
				otherRange))
		}
	}
	return problems
}

// nodeAddress is an address in a node's document.
type nodeAddress struct {
	field   string
	address netip.Addr
}

// addresses returns the IP addresses in a node's document: those of the node and of the API server.
func addresses(document config.Document) (found []nodeAddress) {
	spec := document.Node.Spec
	texts := []struct{ field, text string }{
		{"spec.credentials.hostname", spec.Credentials.Hostname},
		{"spec.kubernetes.join.nodeIP", spec.Kubernetes.Join.NodeIP},
		{"spec.kubernetes.join.controlPlaneEndpoint", spec.Kubernetes.Join.ControlPlaneEndpoint},
	}
	if alias := spec.Kubernetes.Join.ControlPlaneAlias; alias != nil {
		texts = append(texts, struct{ field, text string }{"spec.kubernetes.join.controlPlaneAlias.ip", alias.IP})
	}
	if machine := spec.Machine; machine != nil {
		texts = append(texts, struct{ field, text string }{"spec.machine.network.address", machine.Network.Address})
	}
	for _, t := range texts {
		host, _, err := net.SplitHostPort(t.text)
		if err != nil {
			host = t.text // the text has no port
		}
		if address, err := netip.ParseAddr(host); err == nil {
			found = append(found, nodeAddress{t.field, address.Unmap()})
		}
	}
	return found
}
