package upgradecheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

const (
	ruleFieldUnknown = "field-unknown"
	ruleFieldWindows = "field-not-on-windows"
	ruleProxyMode    = "proxy-mode"
	ruleAffinity     = "cpu-memory-affinity"
)

// field holds a field of a configuration file against the table, and against what Windows refuses.
func (c *checking) field(s Setting) {
	if c.refusedOnWindows(s) || c.mode(s, s.Name == "mode" && s.Program == kubesettings.KubeProxy) {
		return
	}
	known := c.table.Field(s.Program, s.Name, c.target.minor())
	if known.Known || s.Form == Effective {
		return
	}
	f := Finding{Rule: ruleFieldUnknown, Effect: Ignored, Since: since(known), Places: []Place{s.Place},
		Source: fmt.Sprintf("https://github.com/kubernetes/kubernetes/tree/%s/cmd/%s/app", c.table.Source(c.target.minor()), s.Program)}
	why := fmt.Sprintf("%s has no field %s in %s, and ignores it", c.program(s.Program), s.Name, s.Program.Kind())
	if s.Form == DropIn {
		why += " without a line in its log"
	}
	f.Finding = finding.New(s.text(), "%s", why).As(finding.Warning).Remedied("remove it, or correct its name")
	c.add(f)
}

// refusedOnWindows finds fields with which kubelet ends on Windows: validateKubeletOSConfiguration in
// pkg/kubelet/apis/config/validation/validation_windows.go, defaultPodSysctls since 1.37.
func (c *checking) refusedOnWindows(s Setting) bool {
	first, ok := map[string]int{"singleProcessOOMKill": c.table.Oldest(), "userNamespaces": c.table.Oldest(),
		"defaultPodSysctls": 37}[s.Name]
	if s.Program != kubesettings.Kubelet || !ok || s.Empty || s.Linux {
		return false
	}
	if c.target.minor() < first { // then the field is unknown, or nothing
		return s.Form == Effective
	}
	f := Finding{Rule: ruleFieldWindows, Effect: Exits, Since: minorText(first), Places: []Place{s.Place}, Setting: s,
		Source: "https://github.com/kubernetes/kubernetes/blob/" + c.table.Source(c.target.minor()) +
			"/pkg/kubelet/apis/config/validation/validation_windows.go",
		Finding: finding.New(s.text(), "kubelet ends: the field %s is not supported on Windows", s.Name).As(finding.Error).
			Remedied("remove it from the configuration of Windows nodes")}
	if s.mayBeForLinux() {
		f.Severity = finding.Info
	}
	c.add(f)
	return true
}

// mode finds a mode of kube-proxy that Windows refuses (validateProxyModeWindows in
// pkg/proxy/apis/config/validation/validation.go). isMode reports whether the setting is one; the result is the same.
// kubeadm 1.37 writes mode: iptables into its ConfigMap (kubernetes/kubernetes#139777), which counts only if a Windows
// kube-proxy reads it.
func (c *checking) mode(s Setting, isMode bool) bool {
	if !isMode {
		return false
	}
	onWindows := s.Place.Node != "" || s.Form == CommandLine && !s.Linux && s.Place.Object != "" ||
		s.configMap != "" && c.facts.proxyReads[s.configMap]
	if !onWindows || s.Value == "" || s.Value == "kernelspace" {
		return true
	}
	f := Finding{Rule: ruleProxyMode, Effect: Exits, Places: []Place{s.Place},
		Source: "https://github.com/kubernetes/kubernetes/pull/139777",
		Finding: finding.New(s.text(), "kube-proxy ends: Windows has only the mode kernelspace").As(finding.Error).
			Remedied("give kube-proxy on Windows a configuration of its own, or flags: --proxy-mode=kernelspace --kubeconfig=…")}
	c.add(f)
	return true
}

// affinity finds policies of kubelet that had no effect on Windows until 1.38, which turns WindowsCPUAndMemoryAffinity
// on (kubernetes/kubernetes#142500).
func (c *checking) affinity() {
	const gateName, first = "WindowsCPUAndMemoryAffinity", 38
	if c.target.minor() < first {
		return
	}
	for _, s := range c.facts.Settings {
		if s.Program != kubesettings.Kubelet || s.Linux || !isPolicy(s) || strings.EqualFold(s.Value, "none") || s.Value == "" {
			continue
		}
		if present := c.present(s.Place); present >= first || c.isSet(gateName, s.Place) {
			continue
		}
		what := "takes effect on Windows since 1.38, which turns " + gateName + " on"
		if strings.EqualFold(s.Value, "static") {
			what += "; without reserved CPUs or memory, kubelet ends with it"
		}
		severity := finding.Warning
		if s.Place.Node == "" && s.Place.Object == "" {
			severity = finding.Info // a file may be for Linux nodes
		}
		c.add(Finding{Rule: ruleAffinity, Effect: Changed, Since: minorText(first), Places: []Place{s.Place},
			Source: "https://github.com/kubernetes/kubernetes/pull/142500",
			Finding: finding.New(s.text(), "kubelet's %s %s", s.Name, what).As(severity).
				Remedied("set it to none, or the feature gate %s to false; containerd before 2.2 does not know affinities", gateName)})
	}
}

// isPolicy reports whether a setting is a policy of one of kubelet's managers of CPUs and memory.
func isPolicy(s Setting) bool {
	return slices.Contains([]string{"cpuManagerPolicy", "memoryManagerPolicy", "topologyManagerPolicy", "cpu-manager-policy",
		"memory-manager-policy", "topology-manager-policy"}, s.Name)
}

// isSet reports whether kubelet at a place has a feature gate.
func (c *checking) isSet(gate string, p Place) bool {
	return slices.ContainsFunc(c.facts.Settings, func(s Setting) bool {
		return s.Kind == GateSetting && s.Name == gate && s.Program == kubesettings.Kubelet && s.Place.Node == p.Node
	})
}

// baseOf returns the name of a file without its folders, in lower case.
func baseOf(file string) string { return strings.ToLower(file[strings.LastIndexAny(file, `\/`)+1:]) }
