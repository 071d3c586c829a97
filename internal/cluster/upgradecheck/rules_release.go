package upgradecheck

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

const (
	ruleCalico = "calico-windows-version"
	ruleBuild  = "windows-build"
	rulePause  = "sandbox-image"

	ruleOverride = "windows-override"
)

// server2025 is the release that not all projects support yet.
const server2025 = "ltsc2025"

// buildLabel returns the value of the label node.kubernetes.io/windows-build of nodes with a release.
func buildLabel(release string) string {
	r, _ := imagefit.ReleaseNamed(release) // ParseTarget knows the name
	return r.BuildLabel()
}

// windows holds pods and the sandbox image against another release of Windows Server.
func (c *checking) windows() {
	if c.target.Windows == "" {
		return
	}
	for _, p := range c.facts.Pods {
		c.calico(p)
		if build := p.Selectors[corev1.LabelWindowsBuild]; build != "" && build != buildLabel(c.target.Windows) {
			c.add(Finding{Rule: ruleBuild, Effect: Refused, Places: []Place{p.Place},
				Source: "https://kubernetes.io/docs/reference/labels-annotations-taints/#nodekubernetesiowindows-build",
				Finding: finding.New(corev1.LabelWindowsBuild+": "+build, "its pods do not run on %s, whose label is %s", c.target.Windows,
					buildLabel(c.target.Windows)).As(finding.Error).
					Remedied("choose the new build, with an image for it, before the nodes are replaced")})
		}
	}
	for _, file := range c.facts.Containerd {
		c.sandboxImage(file)
	}
	for _, file := range c.facts.Networks {
		if slices.ContainsFunc(file.Plugins, func(plugin string) bool { return plugin == "calico" || plugin == "calico-ipam" }) {
			c.calicoOn2025(file.Place, strings.Join(file.Plugins, ", "))
		}
	}
	for _, o := range c.facts.Overrides {
		c.override(o)
	}
}

// calico finds pods of Calico.
func (c *checking) calico(p Pods) {
	if slices.ContainsFunc(p.Images, func(image string) bool {
		return strings.Contains(image, "calico/node-windows") || strings.Contains(image, "calico/windows")
	}) {
		c.calicoOn2025(p.Place, strings.Join(p.Images, ", "))
	}
}

// calicoOn2025 reports that Calico's project does not state that it supports Server 2025 (projectcalico/calico#11691).
func (c *checking) calicoOn2025(at Place, evidence string) {
	if c.target.Windows != server2025 {
		return
	}
	c.add(Finding{Rule: ruleCalico, Effect: Untested, Places: []Place{at},
		Source: "https://github.com/projectcalico/calico/issues/11691",
		Finding: finding.New(evidence, "Calico's project supports Windows Server 2019 and 2022, not 2025").
			As(finding.Warning).Remedied("try one node of %s first; its overlay network needs Windows' patch of October 2025", server2025)})
}

// override reports an override of a feature that an installer sets for other builds alone. Microsoft publishes the meaning of
// few of them; an upgrade in place keeps the registry.
func (c *checking) override(o Override) {
	target, _ := imagefit.ReleaseNamed(c.target.Windows) // ParseTarget knows the name
	if slices.Contains(o.Builds, target.Build) {
		return
	}
	c.add(Finding{Rule: ruleOverride, Effect: Untested, Places: []Place{o.Place}, Source: o.Source,
		Finding: finding.New(o.Name+" = "+o.Value, "an upgrade in place keeps this override of a feature, which %s sets for other builds "+
			"of Windows than %d", o.Installer, target.Build).As(finding.Info).
			Remedied("remove it before the upgrade, or make a new node, whose image has the overrides of its build")})
}

// sandboxImage finds a configured pause image that is older than the first with Server 2025, 3.10.2
// (kubernetes-sigs/windows-testing#557).
func (c *checking) sandboxImage(file ContainerdFile) {
	if c.target.Windows != server2025 {
		return
	}
	for line := range strings.SplitSeq(string(file.Text), "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		image := strings.Trim(strings.TrimSpace(value), `"'`)
		name, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
		if key = strings.TrimSpace(key); key != "sandbox_image" && key != "sandbox" || !ok || name != "pause" {
			continue
		}
		if is := parsed(tag); is == nil || !is.LessThan(version.MustParseGeneric("3.10.2")) {
			continue
		}
		c.add(Finding{Rule: rulePause, Effect: Refused, Places: []Place{file.Place.at(lineOf(file.Text, key))},
			Source: "https://github.com/kubernetes-sigs/windows-testing/pull/557",
			Finding: finding.New(image, "the sandbox image has no variant for Windows Server 2025: the first with one is 3.10.2").
				As(finding.Warning).Remedied("write registry.k8s.io/pause:3.10.2 or newer")})
	}
}
