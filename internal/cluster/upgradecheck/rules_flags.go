package upgradecheck

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// RuleFlagUnknown is the rule about flags that a program does not have.
const RuleFlagUnknown = "flag-unknown"

const ruleFlagGoing = "flag-going"

// flag holds a flag against the table. An unknown flag ends both programs.
func (c *checking) flag(s Setting) {
	minor := c.target.minor()
	flag := c.table.Flag(s.Program, s.Name, minor)
	f := Finding{Effect: Exits, Since: since(flag.State), Places: []Place{s.Place}, Source: c.flagSource(s), Setting: s}
	switch {
	case !flag.Known:
		f.Rule = RuleFlagUnknown
		if f.Since == "" {
			f.Since = goneBefore(s)
		}
		f.Finding = finding.New(s.text(), "%s ends: %s", s.Program, c.unknownFlag(s, f.Since)).As(finding.Error).
			Remedied("%s", flagRemedy(s))
		if s.Place.isKubeadmFlags() && minor == kubeadmCleans {
			f.Severity, f.Remedy = finding.Warning, "run `kubeadm upgrade node` of 1.35, which removes it; that of 1.36 no longer does"
		}
		if s.Program == kubesettings.Kubelet && f.Since == "" && s.mayBeForLinux() {
			// kubelet has flags on Linux alone: cmd/kubelet/app/options/globalflags_linux.go
			f.Severity = finding.Info
			f.What += ", if a Windows node has it"
		}
	case flag.Gone > 0:
		f.Rule, f.Effect, f.Since = ruleFlagGoing, Deprecated, minorText(flag.Gone)
		f.Finding = finding.New(s.text(), "%s %s will not have the flag --%s, and end", s.Program, minorText(flag.Gone), s.Name).
			As(finding.Info).Remedied("%s", flagRemedy(s))
	default:
		c.mode(s, s.Name == "proxy-mode" && s.Program == kubesettings.KubeProxy)
		return
	}
	c.addFor(s, f)
}

// kubeadmCleans is the minor version whose kubeadm removes --pod-infra-container-image from kubeadm-flags.env
// (kubernetes/kubernetes#133778; #135807 removed that from 1.36).
const kubeadmCleans = 35

func (p Place) isKubeadmFlags() bool { return baseOf(p.File) == "kubeadm-flags.env" }

// unknownFlag returns why a version does not have a flag.
func (c *checking) unknownFlag(s Setting, gone string) string {
	if gone != "" {
		return fmt.Sprintf("Kubernetes %s removed the flag --%s", gone, s.Name)
	}
	return fmt.Sprintf("%s has no flag --%s", c.program(s.Program), s.Name)
}

func flagRemedy(s Setting) string {
	switch s.Name {
	case "pod-infra-container-image":
		return "remove it: containerd's configuration names the sandbox image"
	case "cloud-config":
		return "remove it: --cloud-provider=external stays, and the cloud controller manager has the configuration"
	case "register-schedulable":
		return "remove it, or use --register-with-taints"
	case "log-dir", "log-file", "logtostderr", "alsologtostderr":
		return "remove it, and let kube-log-runner or the service's wrapper write the log"
	}
	return "remove it, or correct its name"
}

// goneBefore returns the version that removed a flag before the table begins; "": unknown.
func goneBefore(s Setting) string {
	if s.Program == kubesettings.KubeProxy {
		if gone := kubeProxyFlagGone(s.Name); gone > 0 {
			return minorText(gone)
		}
		return ""
	}
	const oldestKnown = 22 // of package kubeletargs
	for minor := oldestKnown; minor < 100; minor++ {
		if kubeletargs.Gone(s.Name, minor) {
			return minorText(minor)
		}
	}
	return ""
}

// kubeProxyFlagGone returns the minor version that removed a flag of kube-proxy before the table begins; 0: none. 1.26
// removed klog's flags from all components (kubernetes/enhancements#2845).
func kubeProxyFlagGone(name string) int {
	switch name {
	case "log-dir", "log-file", "log-file-max-size", "logtostderr", "alsologtostderr", "stderrthreshold", "one-output",
		"skip-headers", "skip-log-headers", "add-dir-header", "log-backtrace-at":
		return 26
	}
	return 0
}

func (c *checking) flagSource(s Setting) string {
	requests := map[string]string{"pod-infra-container-image": "133779", "cloud-config": "130161", "register-schedulable": "122384"}
	if request := requests[s.Name]; request != "" && s.Program == kubesettings.Kubelet {
		return "https://github.com/kubernetes/kubernetes/pull/" + request
	}
	return fmt.Sprintf("https://github.com/kubernetes/kubernetes/tree/%s/cmd/%s/app", c.table.Source(c.target.minor()), s.Program)
}
