package up

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/swdt-dev/swdt/internal/config"
)

// checkAddresses returns a *config.Error if an address of a node is in the range of the pods or of
// the Services, since packets to this address would go to the pod network. It does not resolve host
// names.
func checkAddresses(doc config.ClusterDocument, documents []config.Document) error {
	network := doc.Cluster.Spec.Network
	var problems []config.Problem
	for _, document := range documents {
		for _, found := range addresses(document) {
			for _, subnet := range []string{network.PodSubnet, network.ServiceSubnet} {
				// Validation has already reported invalid ranges. A range that the document leaves out is "".
				if taken, err := netip.ParsePrefix(subnet); err == nil && taken.Contains(found.address) {
					problems = append(problems, document.Problem(found.field,
						fmt.Sprintf("%s is in %s, a range of the cluster's pods or Services", found.address, subnet),
						"choose another range in spec.network of the cluster's document"))
				}
			}
		}
	}
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

// nodeAddress is an address in a node's document.
type nodeAddress struct {
	field   string
	address netip.Addr
}

// addresses returns the IP addresses of a node and of the API server that the node's document has.
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
