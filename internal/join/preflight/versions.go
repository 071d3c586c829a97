package preflight

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/cluster/skew"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func needVersion(f *facts) error { return f.unlessUnreachable(nil) }

// lookAtVersions compares kubelet and kubeadm with each other and with the API
// server. https://kubernetes.io/releases/version-skew-policy/
func lookAtVersions(f *facts) []finding.Finding {
	server, err := version.ParseGeneric(f.cluster.version.value)
	if err != nil {
		return []finding.Finding{{Severity: finding.Warning, What: "the API server's version cannot be understood",
			Evidence: err.Error()}}
	}
	var problems []finding.Finding
	kubelet, err := parse(f.kubelet)
	if err != nil {
		return append(problems, noVersion(err))
	}
	kubeadm, err := parse(f.kubeadm)
	if err != nil {
		return append(problems, noVersion(err))
	}
	if kubelet != nil {
		problems = append(problems, skewOfKubelet(kubelet, server)...)
	}
	if kubeadm != nil && len(problems) == 0 {
		problems = append(problems, skewOfKubeadm(kubeadm, kubelet, server)...)
	}
	return problems
}

// parse parses a version with or without a leading v; it returns nil for "".
func parse(text string) (*version.Version, error) {
	if text == "" {
		return nil, nil
	}
	return version.ParseGeneric(text)
}

func noVersion(err error) finding.Finding {
	return finding.Finding{Severity: finding.Error, What: "spec.kubernetes.version is no version",
		Evidence: err.Error(), Remedy: "write one, such as 1.36.3"}
}

func skewOfKubelet(kubelet, server *version.Version) (all []finding.Finding) {
	for _, v := range (skew.Versions{skew.Kubelet: kubelet, skew.APIServer: server}).Violations() {
		p := finding.Finding{Severity: finding.Error, What: v.String(),
			Evidence: fmt.Sprintf("kubelet %s, API server %s", kubelet, server)}
		switch {
		case kubelet.Major() != server.Major():
			p.Remedy = fmt.Sprintf("set spec.kubernetes.version to %s", server)
		case kubelet.Minor() > v.Highest:
			p.Remedy = fmt.Sprintf("set spec.kubernetes.version to %s or older, or upgrade the control plane first", server)
		default:
			p.Remedy = fmt.Sprintf("set spec.kubernetes.version to %d.%d or newer", server.Major(), v.Lowest)
		}
		all = append(all, p)
	}
	return all
}

// skewOfKubeadm compares kubeadm's version with the versions of kubelet and the API server, since
// kubeadm writes the configuration of a kubelet of its own minor version, and reads the
// configuration of the cluster.
func skewOfKubeadm(kubeadm, kubelet, server *version.Version) []finding.Finding {
	p := finding.Finding{Evidence: fmt.Sprintf("kubeadm %s, API server %s", kubeadm, server)}
	switch {
	case kubelet != nil && kubelet.Minor() != kubeadm.Minor():
		p.Severity, p.What = finding.Error, "kubeadm and kubelet are of different minor versions"
		p.Evidence = fmt.Sprintf("kubeadm %s, kubelet %s", kubeadm, kubelet)
		p.Remedy = "let spec.kubernetes.kubelet.source and kubeadmSource be of one release"
	case kubeadm.Minor() < server.Minor():
		p.Severity, p.What = finding.Warning,
			"kubeadm is older than the cluster, and may not understand its configuration"
		p.Remedy = fmt.Sprintf("set spec.kubernetes.version to %s", server)
	default:
		return nil
	}
	return []finding.Finding{p}
}
