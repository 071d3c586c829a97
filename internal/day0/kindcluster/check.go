package kindcluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/swdt-dev/swdt/internal/config"
)

// check looks for what on your machine is in the way of a new cluster. The error is a
// *config.Error.
func check(doc config.ClusterDocument) error {
	problems := checkServer(doc)
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("list the addresses of your machine: %w", err)
	}
	spec := doc.Cluster.Spec.Network
	problems = append(problems, checkSubnet(doc, "spec.network.podSubnet", spec.PodSubnet, addresses)...)
	problems = append(problems, checkSubnet(doc, "spec.network.serviceSubnet", spec.ServiceSubnet, addresses)...)
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

// checkServer tries to listen where the API server is to be published.
func checkServer(doc config.ClusterDocument) []config.Problem {
	spec := doc.Cluster.Spec.ControlPlane.Kind
	const field = "spec.controlPlane.kind"
	listener, err := net.Listen("tcp", net.JoinHostPort(spec.APIServerAddress, "0"))
	if err != nil {
		return []config.Problem{doc.Problem(field+".apiServerAddress",
			fmt.Sprintf("nothing can listen at %s: %v", spec.APIServerAddress, reason(err)),
			"write an address of your machine")}
	}
	_ = listener.Close()
	if spec.APIServerPort == 0 {
		return nil
	}
	listener, err = net.Listen("tcp", net.JoinHostPort(spec.APIServerAddress, strconv.Itoa(spec.APIServerPort)))
	if err != nil {
		return []config.Problem{doc.Problem(field+".apiServerPort",
			fmt.Sprintf("nothing can listen at port %d of %s: %v", spec.APIServerPort, spec.APIServerAddress, reason(err)),
			"choose another port, or leave it out")}
	}
	_ = listener.Close()
	return nil
}

// reason returns the system's error without the operation and the address.
func reason(err error) error {
	if operation := (*net.OpError)(nil); errors.As(err, &operation) {
		return operation.Err
	}
	return err
}

// checkSubnet returns the networks of your machine that overlap a subnet: what is sent there
// would not arrive.
func checkSubnet(doc config.ClusterDocument, field, subnet string, addresses []net.Addr) (problems []config.Problem) {
	wanted := netip.MustParsePrefix(subnet) // it is validated
	for _, address := range addresses {
		own, err := netip.ParsePrefix(address.String())
		if err != nil || own.Addr().IsLoopback() || !own.Overlaps(wanted) {
			continue
		}
		problems = append(problems, doc.Problem(field,
			fmt.Sprintf("%s overlaps %s, a network of your machine", wanted, own.Masked()), "choose another range"))
	}
	return problems
}
