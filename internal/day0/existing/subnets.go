package existing

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
)

// CheckSubnets compares the addresses that the document sets with those of the cluster. A difference
// is a *config.Error. Addresses that the document leaves out, or that the cluster does not reveal, are
// no difference.
func CheckSubnets(ctx context.Context, doc config.ClusterDocument, api *cluster.Cluster) error {
	wanted := doc.Cluster.Spec.Network
	if wanted.PodSubnet == "" && wanted.ServiceSubnet == "" {
		return nil
	}
	facts, err := cni.Gather(ctx, api)
	if err != nil {
		return unusable(doc, err)
	}
	var problems []config.Problem
	for _, subnet := range []struct {
		name, of, wanted string
		found            []string
	}{
		{"podSubnet", "pods", wanted.PodSubnet, facts.PodCIDRs},
		{"serviceSubnet", "Services", wanted.ServiceSubnet, facts.ServiceCIDRs},
	} {
		if subnet.wanted == "" || len(subnet.found) == 0 || slices.ContainsFunc(subnet.found, same(subnet.wanted)) {
			continue
		}
		problems = append(problems, doc.Problem("spec.network."+subnet.name,
			fmt.Sprintf("is %s, but the addresses of the existing cluster's %s are %s", subnet.wanted, subnet.of,
				strings.Join(subnet.found, ", ")),
			"leave the field out: swdt reads these addresses from the cluster"))
	}
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

// same returns a function that reports whether a text is the same range of addresses as wanted.
func same(wanted string) func(string) bool {
	one, err := netip.ParsePrefix(wanted)
	return func(text string) bool {
		other, otherErr := netip.ParsePrefix(text)
		return err == nil && otherErr == nil && one.Masked() == other.Masked()
	}
}
