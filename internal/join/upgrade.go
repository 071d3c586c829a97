package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/cluster/skew"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// ForVersion returns the document with another version of Kubernetes; with the version "", the document itself. A
// document whose version differs and that names the sources of programs is refused with a *config.Error, since these
// sources are of the document's version.
func ForVersion(doc config.Document, version string) (config.Document, error) {
	spec := &doc.Node.Spec.Kubernetes
	if version == "" || strings.TrimPrefix(version, "v") == strings.TrimPrefix(spec.Version, "v") {
		return doc, nil
	}
	err := problemsOf(doc, func(missing func(field, what, remedy string)) {
		for _, source := range []struct{ field, value string }{
			{"kubelet.source", spec.Kubelet.Source}, {"kubelet.kubeadmSource", spec.Kubelet.KubeadmSource},
			{"kubelet.logRunnerSource", spec.Kubelet.LogRunnerSource},
		} {
			if source.value != "" {
				missing(source.field, fmt.Sprintf("is of version %s, and --kubernetes names %s", spec.Version, version),
					"change both spec.kubernetes.version and the sources in the node file, or remove the sources")
			}
		}
	})
	spec.Version = version
	return doc, err
}

// ValidateUpgrade returns a *config.Error if the node file lacks something that an upgrade needs. It contacts neither the
// node nor the cluster.
func ValidateUpgrade(doc config.Document) error {
	return problemsOf(doc, func(missing func(field, what, remedy string)) {
		if doc.Node.Spec.Kubernetes.Version == "" {
			missing("version", "is missing", "write the version to upgrade to, such as 1.36.3, or name it with --kubernetes")
		}
	})
}

// Upgrade brings a node that swdt has joined to the version of Kubernetes in the document, and kubelet to the cluster's
// present configuration. It checks the versions first, then whether the new programs take their settings; if they do not
// fit, it changes nothing and returns a *UpgradeRefusedError. Then one transaction, on the drained node, replaces kubeadm,
// kubelet, kube-log-runner, a kube-proxy that is a service, kubelet's config.yaml as kubeadm upgrade node writes it, and
// kubelet's arguments. If kubelet does not become healthy or its Node not Ready, all of them are restored. o.Cluster is
// required. If o.Drain is nil, the pods stay on the node.
//
// The first step of the result lists the settings of kubelet that were made by hand. They stay.
func Upgrade(ctx context.Context, n *node.Node, doc config.Document, o Options, r ui.Reporter) (plan.Result, error) {
	o.Reporter = r
	u := &upgrade{joining: newJoining(n, doc, o)}
	problems, err := u.check(ctx, n)
	result := plan.Result{Problems: problems}
	if err != nil {
		return result, err
	}
	if finding.Count(problems, finding.Error) > 0 {
		return result, &UpgradeRefusedError{Problems: problems}
	}
	u.programs = kubernetesFiles(u.joining)
	result.Steps, err = plan.Run(ctx, []plan.Step{&byHand{u}, &newPrograms{u}, &newConfig{u}},
		plan.Options{Machine: n, DryRun: o.DryRun, Ordered: true, Holder: o.Holder}, r)
	return result, err
}

// UpgradeRefusedError reports an upgrade that did not begin because the versions do not fit, or since a setting would end
// a new program.
type UpgradeRefusedError struct{ Problems []finding.Problem }

func (e *UpgradeRefusedError) Error() string {
	var b strings.Builder
	b.WriteString("the node cannot be upgraded; nothing was changed:")
	for _, p := range e.Problems {
		if p.Severity == finding.Error {
			fmt.Fprintf(&b, "\n  %s\n    seen: %s\n    → %s", p.What, p.Evidence, p.Remedy)
		}
	}
	return b.String()
}

// NoNodeError reports an upgrade of a node whose Node object does not exist.
type NoNodeError struct{ Node string }

func (e *NoNodeError) Error() string {
	return "upgrade the node: the cluster has no Node " + e.Node + "; run `swdt join`, which registers it again"
}

// check finds the node's version, and compares the versions with each other, then the settings with the new version.
func (s *upgrade) check(ctx context.Context, n *node.Node) ([]finding.Problem, error) {
	own, err := load(ctx, n)
	if err != nil {
		return nil, err
	}
	if !own.Joined {
		return nil, errors.New("upgrade the node: swdt has not joined this machine to a cluster; run `swdt join`")
	}
	if err := s.sameCluster(ctx, n); err != nil {
		return nil, err
	}
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return nil, err
	}
	is, err := s.options.Cluster.Node(ctx, name)
	if err != nil {
		return nil, err
	}
	if !is.Exists {
		return nil, &NoNodeError{name}
	}
	server, err := s.options.Cluster.Version(ctx)
	if err != nil {
		return nil, err
	}
	s.from = strings.TrimPrefix(is.KubeletVersion, "v")
	if s.minor, err = kubeletMinor(s.spec); err != nil {
		return nil, err
	}
	problems, err := versionProblems(server, s.from, s.spec.Version)
	if err != nil || finding.Count(problems, finding.Error) > 0 {
		return problems, err
	}
	settings, err := s.settingsProblems(ctx, n)
	return append(problems, settings...), err
}

// versionProblems holds an upgrade against the rules of version skew.
func versionProblems(server, from, to string) ([]finding.Problem, error) {
	versions := skew.Versions{}
	for component, text := range map[skew.Component]string{
		skew.APIServer: server, skew.Node: from, skew.Kubelet: to, skew.Kubeadm: to,
	} {
		parsed, err := version.ParseGeneric(text)
		if err != nil {
			return nil, fmt.Errorf("compare the versions: %s has %.40q: %w", component, text, err)
		}
		versions[component] = parsed
	}
	var problems []finding.Problem
	for _, v := range versions.Violations() {
		p := finding.Finding{Severity: finding.Error, What: v.String(),
			Evidence: fmt.Sprintf("API server %s, node %s, wanted %s", strings.TrimPrefix(server, "v"), from, to),
			Remedy:   fmt.Sprintf("upgrade to a version of %s", v.Allowed())}
		switch {
		case v.Works():
			p.Severity = finding.Warning
			p.Remedy = fmt.Sprintf("Kubernetes supports %s beside %s", v.Allowed(), v.OtherVersion)
		case v.Other == skew.APIServer && !v.Version.LessThan(v.OtherVersion):
			p.Remedy += ", or upgrade the control plane first"
		case v.Other == skew.Node:
			p.Remedy = "Kubernetes has no downgrade: `swdt reset` and `swdt join` the node with the older version"
		}
		problems = append(problems, finding.Problem{Check: "version-skew", Where: finding.OnCluster, Finding: p})
	}
	return problems, nil
}

// refuseUpgrade returns an error if a join would replace the kubelet of a joined node by one of another minor version:
// the configuration that kubeadm wrote for the present kubelet would stay.
func refuseUpgrade(ctx context.Context, n *node.Node, found push.NodeResult) error {
	for _, c := range found.Components {
		if c.Name != kubeletName || c.Action != push.ActionReplaced {
			continue
		}
		before, wanted := minorOf(c.Version.Before), minorOf(c.Version.Wanted)
		if before == wanted || before == "" || wanted == "" {
			continue
		}
		own, err := load(ctx, n)
		if err != nil || !own.Joined {
			return err
		}
		return fmt.Errorf("the node has kubelet %s, and the node file names %s: a join does not upgrade a node, whose "+
			"kubelet would keep the configuration of %s; run `swdt upgrade node`, or set spec.kubernetes.version to the "+
			"node's version", strings.TrimPrefix(c.Version.Before, "v"), c.Version.Wanted, before)
	}
	return nil
}

// minorOf returns the major and minor part of a version, such as 1.36; "" if the text is no version.
func minorOf(text string) string {
	parsed, err := version.ParseGeneric(text)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor())
}

// proxyPath returns the path of the kube-proxy that a service of that name runs; "" if the node has no such service, or
// if the node file has a provisioner for it.
func (s *upgrade) proxyPath(ctx context.Context, n *node.Node) (string, error) {
	for _, p := range s.spec.Provisioners {
		if strings.EqualFold(p.Name, kubeProxyName) {
			return "", nil
		}
	}
	reply, err := n.Swap.Inspect(ctx, inspectProxy())
	if err != nil {
		return "", fmt.Errorf("look at the service %s: %w", kubeProxyName, err)
	}
	for _, c := range reply.GetComponents() {
		if c.GetService() != nil {
			return cmp.Or(c.GetStarts().GetPath(), kubeProxyExe), nil
		}
	}
	return "", nil
}
