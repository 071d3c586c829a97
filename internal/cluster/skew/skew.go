// Package skew has Kubernetes' rules about the versions of components that work together, as one
// table. The sources are https://kubernetes.io/releases/version-skew-policy/ and, for kubeadm,
// "Version skew policy" of
// https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/create-cluster-kubeadm/.
// Each rule compares minor versions; a patch version never matters.
package skew

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// Component is a component of a cluster.
type Component string

// The components that have rules.
const (
	APIServer Component = "the API server"
	Kubelet   Component = "kubelet"
	KubeProxy Component = "kube-proxy"
	Kubeadm   Component = "kubeadm"
	// Node has the version of the kubeadm with which the node joined or was upgraded the last time.
	Node Component = "the node"
)

// Rule limits the version of a component by that of another.
type Rule struct {
	Component, Other Component
	// Older and Newer are the minor versions by which Component may be older or newer than Other.
	Older, Newer int
	// OlderBefore25 replaces Older, and Newer if that is not 0, for a Component below 1.25; 0: it does not.
	OlderBefore25 int
	// OlderWorks and NewerWorks report that an older or newer Component works beyond the limit, although
	// Kubernetes does not support it.
	OlderWorks, NewerWorks bool
}

// Rules returns the table.
func Rules() []Rule {
	return []Rule{
		{Component: Kubelet, Other: APIServer, Older: 3, OlderBefore25: 2},
		{Component: KubeProxy, Other: APIServer, Older: 3, OlderBefore25: 2},
		{Component: KubeProxy, Other: Kubelet, Older: 3, Newer: 3, OlderBefore25: 2},
		// kubeadm writes the configuration of a kubelet of its own minor version. Kubernetes allows an
		// older kubelet beside it while an upgrade is under way.
		{Component: Kubelet, Other: Kubeadm, Older: 3},
		// kubeadm reads the cluster's configuration, which an API server's own kubeadm has written.
		{Component: Kubeadm, Other: APIServer, Newer: 1, OlderWorks: true, NewerWorks: true},
		// An upgrade goes from one minor version to the next, and never back.
		{Component: Kubeadm, Other: Node, Newer: 1, NewerWorks: true},
	}
}

// Versions are the versions of a cluster's components; a component that is missing or nil has no
// known version.
type Versions map[Component]*version.Version

// Violation is a pair of versions that a rule does not allow.
type Violation struct {
	Rule
	Version, OtherVersion *version.Version
	// Lowest and Highest are the minor versions that the rule allows beside OtherVersion.
	Lowest, Highest uint
}

// Violations returns the pairs that the table does not allow, in its order.
func (v Versions) Violations() []Violation {
	var all []Violation
	for _, rule := range Rules() {
		is, other := v[rule.Component], v[rule.Other]
		if is == nil || other == nil {
			continue
		}
		lowest, highest := rule.limits(is, other)
		if is.Major() != other.Major() || is.Minor() < lowest || is.Minor() > highest {
			all = append(all, Violation{Rule: rule, Version: is, OtherVersion: other, Lowest: lowest, Highest: highest})
		}
	}
	return all
}

func (r Rule) limits(is, other *version.Version) (lowest, highest uint) {
	older, newer := r.Older, r.Newer
	if r.OlderBefore25 > 0 && is.Major() == 1 && is.Minor() < 25 {
		older, newer = r.OlderBefore25, min(newer, r.OlderBefore25)
	}
	lowest = other.Minor() - min(uint(older), other.Minor())
	return lowest, other.Minor() + uint(newer)
}

// Works reports whether the components work together although Kubernetes does not support it.
func (v Violation) Works() bool {
	switch {
	case v.Version.Major() != v.OtherVersion.Major():
		return false
	case v.Version.Minor() < v.Lowest:
		return v.OlderWorks
	}
	return v.NewerWorks
}

// String returns a text such as "kubelet is newer than the API server".
func (v Violation) String() string {
	switch {
	case v.Version.Major() != v.OtherVersion.Major():
		return fmt.Sprintf("%s is of another major version than %s", v.Component, v.Other)
	case v.Version.Minor() < v.Lowest:
		return fmt.Sprintf("%s is %s behind %s", v.Component, minors(v.OtherVersion.Minor()-v.Version.Minor()), v.Other)
	case v.Newer == 0:
		return fmt.Sprintf("%s is newer than %s", v.Component, v.Other)
	}
	return fmt.Sprintf("%s is %s ahead of %s", v.Component, minors(v.Version.Minor()-v.OtherVersion.Minor()), v.Other)
}

// Allowed returns the minor versions that the rule allows, such as "1.33 to 1.36".
func (v Violation) Allowed() string {
	major := v.OtherVersion.Major()
	if v.Lowest == v.Highest {
		return fmt.Sprintf("%d.%d", major, v.Lowest)
	}
	return fmt.Sprintf("%d.%d to %d.%d", major, v.Lowest, major, v.Highest)
}

func minors(count uint) string {
	if count == 1 {
		return "1 minor version"
	}
	return fmt.Sprintf("%d minor versions", count)
}
