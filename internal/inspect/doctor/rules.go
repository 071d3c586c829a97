package doctor

import (
	"cmp"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Rules returns all rules in the order in which they run. To add a rule, add it to the list of the
// rule's subject, and add a test case in which the rule finds something.
func Rules() []Rule {
	return slices.Concat(machineRules(), patchRules(), proxyRules(), eventRules(), portRules(), serviceRules(), pushRules(), kubeletRules(), settingsRules(),
		credentialRules(),
		runtimeRules(), imageRules(), cniRules(), hnsRules(), programmedRules(), nodeObjectRules(), podRules(), podNetworkRules())
}

// fromPreflight returns r with the check of `swdt join --preflight` that has the same name,
// since a fault that prevents a machine from becoming a node also harms a node. If the rule has a
// remedy, this remedy replaces the check's remedy, which is about joining. The rule's severity is
// an upper bound of the severity that the check reports.
func fromPreflight(r Rule, see func(*Facts) preflight.Gathered) Rule {
	r.look = func(f *Facts) (all []finding.Finding) {
		problems, err := preflight.Judge(r.ID, see(f))
		if err != nil {
			return one(finding.New("", "%v", err))
		}
		for _, found := range problems {
			if !r.Severity.AtLeast(found.Severity) {
				found.Severity = r.Severity
			}
			found.Remedy = cmp.Or(r.Remedy, found.Remedy)
			all = append(all, found)
		}
		return all
	}
	return r
}

func gatheredMachine(f *Facts) preflight.Gathered {
	return preflight.Gathered{Machine: f.Machine.Value.platform()}
}

func gatheredServices(f *Facts) preflight.Gathered {
	return preflight.Gathered{Services: *f.Services.Value}
}

// gatheredNetwork includes the API server's version if it is known: it is that of an image whose tag has none.
func gatheredNetwork(f *Facts) preflight.Gathered {
	g := preflight.Gathered{CNI: *f.Network.Value}
	if f.Server.Value != nil {
		g.APIServer = f.Server.Value.Version
	}
	return g
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Links to the documentation of other projects.
const (
	docsSkew     = "https://kubernetes.io/releases/version-skew-policy/"
	docsWindows  = "https://kubernetes.io/docs/concepts/windows/intro/"
	docsDebug    = "https://kubernetes.io/docs/tasks/debug/debug-cluster/windows/"
	docsKubelet  = "https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/"
	docsPods     = "https://kubernetes.io/docs/tasks/debug/debug-application/debug-pods/"
	docsImages   = "https://learn.microsoft.com/virtualization/windowscontainers/deploy-containers/version-compatibility"
	docsCRI      = "https://github.com/containerd/containerd/blob/main/docs/cri/config.md"
	docsReleases = "https://containerd.io/releases/#kubernetes-support"
	docsRunClass = "https://kubernetes.io/docs/concepts/containers/runtime-class/"
	docsCerts    = "https://kubernetes.io/docs/tasks/tls/certificate-rotation/"
	docsPorts    = "https://learn.microsoft.com/troubleshoot/windows-server/networking/" +
		"default-dynamic-port-range-tcpip-chang"
	docsCalico  = "https://docs.tigera.io/calico/latest/getting-started/kubernetes/windows-calico/"
	docsFlannel = "https://github.com/flannel-io/flannel/blob/master/Documentation/backends.md#vxlan"
	docsAntrea  = "https://antrea.io/docs/main/docs/windows/"
	docsPush    = "https://github.com/swdt-dev/swdt/blob/main/docs/guides/push.md"
	docsJoin    = "https://github.com/swdt-dev/swdt/blob/main/docs/guides/join.md"
)
