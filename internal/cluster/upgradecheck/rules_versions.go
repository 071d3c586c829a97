package upgradecheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/cluster/skew"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// RuleSkew is the rule about the versions of components that work together.
const RuleSkew = "version-skew"

const (
	ruleRuntime = "containerd-version"
)

// skew holds the target against Kubernetes' rules about versions that work together.
func (c *checking) skew() {
	for _, n := range c.facts.Nodes {
		versions := skew.Versions{skew.Kubelet: c.target.Kubernetes, skew.Kubeadm: c.target.Kubernetes,
			skew.Node: parsed(n.Kubelet), skew.APIServer: c.serverAfter(), skew.KubeProxy: parsed(n.KubeProxy)}
		for _, v := range versions.Violations() {
			f := finding.New(fmt.Sprintf("API server %s, kubelet %s", orUnknown(c.facts.Server), orUnknown(n.Kubelet)), "%s", v.String())
			f = f.As(finding.Error).Remedied("upgrade to a version of %s first", v.Allowed())
			switch {
			case v.Works():
				f = f.As(finding.Warning).Remedied("Kubernetes supports %s beside %s", v.Allowed(), v.OtherVersion)
			case v.Other == skew.Node:
				f = f.Remedied("Kubernetes has no downgrade")
			}
			c.add(Finding{Rule: RuleSkew, Effect: Refused, Places: []Place{{Node: n.Name}}, Finding: f,
				Source: "https://kubernetes.io/releases/version-skew-policy/"})
		}
	}
}

// serverAfter returns the API server's version at the time when nodes are upgraded; nil: the target's, since a control
// plane is upgraded before its nodes.
func (c *checking) serverAfter() *version.Version {
	is := parsed(c.facts.Server)
	if is == nil || is.LessThan(c.target.Kubernetes) {
		return nil
	}
	return is
}

func parsed(text string) *version.Version {
	v, err := version.ParseGeneric(text)
	if err != nil {
		return nil
	}
	return v
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// oldestRuntime returns the oldest minor version of containerd that containerd's RELEASES.md (of 2.4.2) pairs with a
// version of Kubernetes. 1.38 is in no release of that file yet.
func oldestRuntime(minor int) *version.Version {
	switch {
	case minor >= 37:
		return version.MajorMinor(2, 3)
	case minor == 36:
		return version.MajorMinor(2, 2)
	case minor == 35:
		return version.MajorMinor(1, 7)
	}
	return version.MajorMinor(1, 6)
}

// runtimes finds containerds that the target's Kubernetes is not paired with.
func (c *checking) runtimes() {
	oldest := oldestRuntime(c.target.minor())
	for _, n := range c.facts.Nodes {
		is := parsed(n.Containerd)
		if c.target.Containerd != nil {
			is = c.target.Containerd
		}
		if is == nil || !is.LessThan(oldest) {
			continue
		}
		what := fmt.Sprintf("containerd's project pairs Kubernetes %s with containerd %s and newer", minorText(c.target.minor()), oldest)
		if is.LessThan(version.MajorMinor(2, 0)) && c.target.minor() >= 36 {
			what += "; before 2.0 it lacks RuntimeConfig, which kubelet asks for, and a later kubelet demands"
		}
		c.add(Finding{Rule: ruleRuntime, Effect: Untested, Places: []Place{{Node: n.Name}},
			Source:  "https://github.com/containerd/containerd/blob/v2.4.2/RELEASES.md",
			Finding: finding.New("containerd "+is.String(), "%s", what).As(finding.Warning).Remedied("upgrade containerd too")})
	}
}
