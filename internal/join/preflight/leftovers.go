package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// clientCertificate is the certificate that kubelet got from a cluster.
const clientCertificate = `C:\var\lib\kubelet\pki\kubelet-client-current.pem`

// leftovers returns the files that show that the machine is already a node. kubeadm refuses
// to join if one of the first three exists.
func leftovers() []string {
	return []string{
		`C:\etc\kubernetes\kubelet.conf`, `C:\etc\kubernetes\bootstrap-kubelet.conf`, `C:\etc\kubernetes\pki\ca.crt`,
		`C:\var\lib\kubelet\config.yaml`, `C:\var\lib\kubelet\kubeadm-flags.env`,
		`C:\var\lib\kubelet\instance-config.yaml`,
		clientCertificate,
	}
}

// OtherClusterRemedy is the remedy for a node of another cluster.
const OtherClusterRemedy = "name the kubeconfig of that cluster, or leave that cluster without sending it a request: " +
	"`swdt reset --no-drain`"

// SameAuthority reports whether two lists of hashes of CAs, both not empty, belong to one
// cluster.
func SameAuthority(a, b []string) bool {
	return slices.ContainsFunc(a, func(hash string) bool {
		return slices.ContainsFunc(b, func(other string) bool { return strings.EqualFold(hash, other) })
	})
}

// needAuthorities returns an error if the cluster's CAs are unknown. Without access to the cluster,
// the hash of the CA in the node file is enough.
func needAuthorities(f *facts) error {
	if f.cluster != nil && needClusterInfo(f) != nil {
		return errReportedElsewhere
	}
	return nil
}

// lookAtMembership finds a machine that swdt has made a node of another cluster, such as an earlier
// cluster at the same address.
func lookAtMembership(f *facts) []finding.Finding {
	wanted := []string{f.spec.Join.DiscoveryTokenCACertHash}
	if f.cluster != nil {
		wanted = f.cluster.info.value.CACertHashes
	}
	known := len(wanted) > 0 && wanted[0] != "" && len(f.own.Authorities) > 0
	if !known || SameAuthority(wanted, f.own.Authorities) {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Error, What: "swdt has made the machine a node of another cluster",
		Evidence: fmt.Sprintf("kubelet trusts the CA %s; this cluster's is %s", strings.Join(f.own.Authorities, ", "),
			strings.Join(wanted, ", ")),
		Remedy: OtherClusterRemedy,
	}}
}

func needFiles(f *facts) error { return f.node.files.err }

func lookAtLeftovers(f *facts) []finding.Finding {
	if f.own.Joined {
		return nil
	}
	foreign := slices.DeleteFunc(slices.Clone(f.node.files.value), func(path string) bool {
		return slices.ContainsFunc(f.own.Files, func(own string) bool { return clean(own) == clean(path) })
	})
	if len(foreign) == 0 {
		return nil
	}
	p := finding.Finding{
		Severity: finding.Error, What: "the machine is, or was, a node of a cluster that swdt has not joined it to",
		Evidence: strings.Join(foreign, ", "),
		Remedy:   "if it is not needed any more, run kubeadm reset on the machine and remove these files",
	}
	if slices.Equal(foreign, []string{clientCertificate}) {
		p.Severity, p.What = finding.Warning, "there is a client certificate of an earlier kubelet"
	}
	return []finding.Finding{p}
}
