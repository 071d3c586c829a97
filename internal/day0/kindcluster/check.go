package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/swdt-dev/swdt/internal/config"
)

// check checks that your machine can publish the new cluster's API server, that no network of your
// machine overlaps the cluster's, and that the container runtime has the images to load. If one of
// these checks fails, the error is a *config.Error.
func (c *Clusters) check(ctx context.Context, doc config.ClusterDocument) error {
	problems := checkServer(doc)
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("list the addresses of your machine: %w", err)
	}
	spec := doc.Cluster.Spec.Network
	problems = append(problems, checkSubnet(doc, "spec.network.podSubnet", spec.PodSubnet, addresses)...)
	problems = append(problems, checkSubnet(doc, "spec.network.serviceSubnet", spec.ServiceSubnet, addresses)...)
	problems = append(problems, c.checkNodeImage(ctx, doc)...)
	for i, image := range doc.Cluster.Spec.ControlPlane.Kind.Images {
		if _, err := c.kind.ImageID(ctx, image); err != nil {
			field := fmt.Sprintf("spec.controlPlane.kind.images[%d]", i)
			problems = append(problems, doc.Problem(field, err.Error(), "or remove the image from the list"))
		}
	}
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

// checkServer tries to listen at the address and port at which kind will publish the API server.
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

// checkSubnet returns a problem for each network of your machine that overlaps subnet: packets to
// the addresses that both contain would not arrive.
func checkSubnet(doc config.ClusterDocument, field, subnet string, addresses []net.Addr) (problems []config.Problem) {
	wanted := netip.MustParsePrefix(subnet) // v1alpha1.ValidateCluster has accepted the subnet
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
