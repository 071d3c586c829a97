package preflight

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// unlessUnreachable returns err, or errReportedElsewhere if the API server does not answer. In the
// second case, all facts about the cluster are unknown, and another check reports the cause.
func (f *facts) unlessUnreachable(err error) error {
	if f.cluster.version.err != nil {
		return errReportedElsewhere
	}
	return err
}

func lookAtAPIServer(f *facts) []finding.Finding {
	err := f.cluster.version.err
	if err == nil {
		return nil
	}
	p := finding.Finding{Severity: finding.Error, What: "the API server does not answer", Evidence: err.Error(),
		Remedy: "is the cluster running, and does the kubeconfig belong to it?"}
	var (
		credentials  *cluster.CredentialError
		unauthorized *cluster.UnauthorizedError
		forbidden    *cluster.ForbiddenError
		authority    x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &credentials):
		p.What, p.Evidence, p.Remedy = credentials.Fault(), "the API server was not asked", credentials.Remedy()
	case errors.As(err, &authority):
		p.What, p.Remedy = "the API server's certificate is not of the kubeconfig's CA",
			"get the cluster's present kubeconfig: this one may be of an earlier cluster at the same address"
	case errors.As(err, &unauthorized):
		p.What, p.Remedy = "the API server does not accept the kubeconfig's credentials",
			"get a new kubeconfig of an administrator"
	case errors.As(err, &forbidden):
		p.What, p.Remedy = "the kubeconfig's user may do next to nothing", "use an administrator's kubeconfig"
	}
	return []finding.Finding{p}
}

func needPermissions(f *facts) error { return f.unlessUnreachable(f.cluster.missing.err) }

// lookAtPermissions finds permissions in the cluster that a join lacks. It does not require
// access to Secrets if the node file has the token.
func lookAtPermissions(f *facts) []finding.Finding {
	var missing []string
	for _, p := range f.cluster.missing.value {
		if p.Resource != "secrets" || !f.hasToken() {
			missing = append(missing, p.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Error, What: "the kubeconfig's user may not do all that joining takes",
		Evidence: "may not " + strings.Join(missing, ", "),
		Remedy:   "use an administrator's kubeconfig, or grant these permissions",
	}}
}

func (f *facts) hasToken() bool { return f.spec.Join.Token != "" || f.spec.Join.TokenFrom != nil }

func needClusterInfo(f *facts) error { return f.unlessUnreachable(f.cluster.info.err) }

// lookAtClusterInfo finds causes that would make kubeadm's discovery fail. Discovery begins
// with ConfigMap cluster-info, which kubeadm reads without credentials.
func lookAtClusterInfo(f *facts) (problems []finding.Finding) {
	const again = "run kubeadm init phase bootstrap-token on the control plane"
	info := f.cluster.info.value
	if !info.Exists {
		return []finding.Finding{{
			Severity: finding.Error,
			What:     "there is no ConfigMap cluster-info in kube-public: nodes cannot join by a token", Remedy: again,
		}}
	}
	if !info.Anonymous {
		problems = append(problems, finding.Finding{
			Severity: finding.Error,
			What:     "ConfigMap kube-public/cluster-info cannot be read without credentials, and kubeadm has none yet",
			Remedy:   again + "; the API server must not have --anonymous-auth=false",
		})
	}
	if len(info.CACertHashes) == 0 {
		problems = append(problems, finding.Finding{Severity: finding.Error,
			What: "ConfigMap kube-public/cluster-info has no CA", Remedy: again})
	}
	pin := f.spec.Join.DiscoveryTokenCACertHash
	if pin != "" && len(info.CACertHashes) > 0 &&
		!slices.ContainsFunc(info.CACertHashes, func(h string) bool { return strings.EqualFold(h, pin) }) {
		problems = append(problems, finding.Finding{
			Severity: finding.Error,
			What:     "spec.kubernetes.join.discoveryTokenCACertHash is not the hash of this cluster's CA",
			Evidence: "the cluster has " + strings.Join(info.CACertHashes, ", "), Remedy: "remove it, or correct it",
		})
	}
	// The id, before the dot, is no secret.
	id, _, isToken := strings.Cut(f.spec.Join.Token, ".")
	if isToken && !slices.Contains(info.SignedFor, id) {
		problems = append(problems, finding.Finding{
			Severity: finding.Error, What: fmt.Sprintf("this cluster does not accept the bootstrap token %s", id),
			Evidence: "cluster-info is not signed for it: it has expired, was never made, or the controller " +
				"manager's bootstrap signer is off",
			Remedy: "remove spec.kubernetes.join.token, and swdt makes one",
		})
	}
	return problems
}

func needKubeletConfig(f *facts) error { return f.unlessUnreachable(f.cluster.kubeletConfig.err) }

func lookAtKubeletConfig(f *facts) []finding.Finding {
	const again = "run kubeadm init phase upload-config kubelet on the control plane"
	config := f.cluster.kubeletConfig.value
	if !config.Exists {
		return []finding.Finding{{Severity: finding.Error,
			What: "there is no ConfigMap kubelet-config in kube-system, from which a node takes its " +
				"kubelet's settings", Remedy: again}}
	}
	var problems []finding.Finding
	for _, m := range kubeletconfig.Check([]byte(config.Content), kubeletconfig.File) {
		p := finding.Finding{Severity: finding.Error, Evidence: m.String(), Remedy: again,
			What: "kubelet does not start with ConfigMap kube-system/kubelet-config"}
		if !m.Ends {
			p.Severity, p.What = finding.Warning, "kubelet ignores a field of ConfigMap kube-system/kubelet-config"
		}
		problems = append(problems, p)
	}
	return problems
}

func needNamesake(f *facts) error {
	if errors.Is(f.cluster.namesake.err, errNoName) {
		return fmt.Errorf("%w: %w", errNoName, errReportedElsewhere)
	}
	return f.unlessUnreachable(f.cluster.namesake.err)
}

// lookAtNamesake finds a Node that already has the name. kubeadm refuses to join if that Node is
// Ready. If that Node is not Ready, the machine takes the Node over. If the machine has just left
// the cluster, its old Node stays Ready for a while, and a join waits until the old Node is no
// longer Ready.
func lookAtNamesake(f *facts) []finding.Finding {
	n := f.cluster.namesake.value
	if !n.Exists || f.own.Joined && !f.isOther(n) {
		return nil
	}
	state := "not Ready"
	if n.Ready {
		state = "Ready"
	}
	p := finding.Finding{
		Severity: finding.Warning, What: fmt.Sprintf("the cluster has a node %s already, which is %s", n.Name, state),
		Evidence: strings.Join(slices.DeleteFunc([]string{n.OSImage, n.KubeletVersion, addresses(n)},
			func(s string) bool { return s == "" }), ", "),
		Remedy: fmt.Sprintf("if that node is this machine, or no longer exists, delete it (%s); else set "+
			"spec.kubernetes.join.nodeName",
			remedy.KubectlCommand("delete", "node", n.Name)),
	}
	switch {
	case f.isOther(n):
		p.Severity, p.What = finding.Error, p.What+" and another machine"
	case f.hasLeft(n):
		p.Severity, p.What = finding.Info, fmt.Sprintf("the cluster still has this machine's earlier node %s, which is %s",
			n.Name, state)
		p.Remedy = "none needed: the join waits until the cluster has noticed that the node's kubelet has stopped, and then " +
			"takes the node over"
	case n.Ready:
		p.Severity = finding.Error
	}
	return []finding.Finding{p}
}

// hasLeft reports whether the Node is known to belong to this machine, and this machine no
// longer has a kubelet.
func (f *facts) hasLeft(n cluster.Node) bool {
	if f.node == nil || f.node.services.err != nil {
		return false
	}
	if same, _ := cluster.SameMachine(f.node.uuid, n.SystemUUID); !same {
		return false
	}
	_, kubelet := f.node.services.value[kubeletService]
	return !kubelet
}

// isOther reports whether the Node is known to belong to another machine than this one.
func (f *facts) isOther(n cluster.Node) bool {
	if n.OS != "" && n.OS != "windows" {
		return true
	}
	if f.node == nil {
		return false
	}
	same, known := cluster.SameMachine(f.node.uuid, n.SystemUUID)
	return known && !same
}

func addresses(n cluster.Node) string {
	var all []string
	for _, a := range n.Addresses {
		all = append(all, a.Address)
	}
	return strings.Join(all, " ")
}
