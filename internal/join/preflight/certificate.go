package preflight

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// gatherCertificates looks from this machine at the certificates that the API server presents at
// the addresses that the node will use. The certificate is unknown for an address that only the
// node can reach, and for a name without an address. gatherCertificates returns an error only if
// ctx has ended.
func gatherCertificates(ctx context.Context, in Input, f *facts) error {
	if f.cluster.version.err != nil {
		return ctx.Err()
	}
	targets := f.targets()
	f.cluster.certificates = make([]presented, len(targets))
	var group errgroup.Group
	for i, t := range targets {
		group.Go(func() error {
			host, port, err := net.SplitHostPort(t.address)
			if err != nil {
				f.cluster.certificates[i] = presented{t, known[[]string]{err: err}}
				return nil
			}
			at := net.JoinHostPort(cmp.Or(t.planned, host), port)
			f.cluster.certificates[i] = presented{t, factOf(in.Cluster.MissingName(ctx, host, at))}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// needCertificates returns an error if this machine could look at no certificate. The check is then
// skipped without a warning, since the node may be in a network that this machine does not reach.
func needCertificates(f *facts) error {
	for _, p := range f.cluster.certificates {
		if p.others.err == nil {
			return nil
		}
	}
	return fmt.Errorf("this machine does not reach the API server as the node does: %w", errReportedElsewhere)
}

// lookAtCertificates finds hosts that are not in the API server's certificate: kubeadm and kubelet do
// not trust an API server that they call by such a host.
func lookAtCertificates(f *facts) (problems []finding.Finding) {
	for _, p := range f.cluster.certificates {
		if p.others.err != nil || len(p.others.value) == 0 {
			continue
		}
		problems = append(problems, finding.Finding{
			Severity: finding.Error,
			What:     fmt.Sprintf("the API server's certificate is not for %s, %s", p.host(), p.what),
			Evidence: "it is for " + strings.Join(p.others.value, ", "),
			Remedy: fmt.Sprintf("set spec.kubernetes.join.controlPlaneEndpoint to one of these, or add %s to the "+
				"certificate (kind: apiServerNames in the cluster's document; kubeadm: apiServer.certSANs)", p.host()),
		})
	}
	return problems
}
