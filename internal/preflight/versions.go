package preflight

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// maxSkew is how many minor versions a kubelet may be behind the API server.
const maxSkew = 3

func needVersion(f *facts) error { return f.unlessUnreachable(nil) }

// lookAtVersions compares kubelet, and kubeadm which is always of its version,
// with the API server. https://kubernetes.io/releases/version-skew-policy/
func lookAtVersions(f *facts) []Problem {
	if f.spec.Version == "" {
		return nil // whatever the source is
	}
	node, err := version.ParseGeneric(f.spec.Version)
	if err != nil {
		return []Problem{{Severity: Error, What: "spec.kubernetes.version is no version", Evidence: err.Error(), Remedy: "write one, such as 1.36.3"}}
	}
	server, err := version.ParseGeneric(f.cluster.version.value)
	if err != nil {
		return []Problem{{Severity: Warning, What: "the API server's version cannot be understood", Evidence: err.Error()}}
	}
	p := Problem{Severity: Error, Evidence: fmt.Sprintf("kubelet %s, API server %s", node, server)}
	switch behind := int(server.Minor()) - int(node.Minor()); {
	case node.Major() != server.Major():
		p.What, p.Remedy = "kubelet is of another major version than the API server", fmt.Sprintf("set spec.kubernetes.version to %s", server)
	case behind < 0:
		p.What = "kubelet is newer than the API server"
		p.Remedy = fmt.Sprintf("set spec.kubernetes.version to %s or older, or upgrade the control plane first", server)
	case behind > maxSkew:
		p.What = fmt.Sprintf("kubelet is %d minor versions behind the API server", behind)
		p.Remedy = fmt.Sprintf("set spec.kubernetes.version to 1.%d or newer", server.Minor()-maxSkew)
	case behind > 0:
		p.Severity, p.What = Warning, "kubeadm is older than the cluster, and may not understand its configuration"
		p.Remedy = fmt.Sprintf("set spec.kubernetes.version to %s", server)
	default:
		return nil
	}
	return []Problem{p}
}
