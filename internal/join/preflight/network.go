package preflight

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/cluster/skew"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

func needCNI(f *facts) error { return f.unlessUnreachable(f.cluster.cni.err) }

// The pod network is checked last and only causes warnings: a node joins without one, but
// does not become Ready.

func lookAtPodNetwork(f *facts) []finding.Finding {
	network := f.cluster.cni.value
	if network.Calico != nil || network.Flannel != nil || network.Antrea != nil {
		return nil
	}
	if is := f.cluster.namesake.value; f.own.Joined && is.Ready && !f.isOther(is) {
		return nil // the cluster may have a pod network that swdt does not recognise
	}
	return []finding.Finding{{
		Severity: finding.Warning,
		What:     "no pod network that supports Windows was found: the node will not become Ready",
		Remedy:   remedy.Command("network", "install", "calico") + " installs Calico with its part for Windows",
	}}
}

// found collects warnings about the pod network.
type found []finding.Finding

func (f *found) warn(what, evidence, remedy string) {
	*f = append(*f, finding.Finding{Severity: finding.Warning, What: what, Evidence: evidence, Remedy: remedy})
}

// lookAtCalico finds settings of Calico that do not work with Windows nodes, see
// https://docs.tigera.io/calico/latest/getting-started/kubernetes/windows-calico/
func lookAtCalico(f *facts) []finding.Finding {
	c := f.cluster.cni.value.Calico
	if c == nil {
		return nil
	}
	var problems found
	install := remedy.Command("network", "install", "calico") + " corrects it"
	switch {
	case !c.Operator:
		if len(c.WindowsDaemonSets) == 0 {
			problems.warn("Calico does not run on Windows nodes: pods there get no network",
				"it was not installed by its operator, and has no DaemonSet for Windows",
				"install Calico by its operator, with windowsDataplane HNS")
		}
	case c.WindowsDataplane != "HNS":
		problems.warn("Calico does not run on Windows nodes: pods there get no network",
			"calicoNetwork.windowsDataplane is "+orUnset(c.WindowsDataplane), install)
	}
	if c.Operator && c.BGP != "Disabled" {
		problems.warn("Calico uses BGP, which its operator does not do on Windows: pods there are not reached",
			"calicoNetwork.bgp is "+orUnset(c.BGP), install)
	}
	if c.Operator && len(c.ServiceCIDRs) == 0 {
		problems.warn("Calico on Windows lacks the addresses of services: pods there do not reach them",
			"serviceCIDRs is not set", install)
	}
	if c.Operator && !c.ServicesEndpoint {
		problems.warn("Calico on Windows lacks the address of the API server, and does not start",
			"there is no ConfigMap tigera-operator/kubernetes-services-endpoint", install)
	}
	if !c.StrictAffinity {
		problems.warn("Calico lends addresses of one node to another, which Windows cannot do: pods there are not "+
			"reached", "IPAM's strictAffinity is off", affinityRemedy(c))
	}
	for _, pool := range c.Pools {
		if pool.IPIP != "" && pool.IPIP != "Never" {
			problems.warn("Calico's pool "+pool.Name+" uses IP in IP, which Windows does not know",
				fmt.Sprintf("%s, ipipMode %s", pool.CIDR, pool.IPIP),
				remedy.Command("network", "install", "calico", "--force")+" makes it VXLAN, if it is the operator's")
		}
	}
	return problems
}

// affinityRemedy returns the remedy for strictAffinity. swdt sets strictAffinity only if Calico's
// operator has installed Calico.
func affinityRemedy(c *cluster.Calico) string {
	if c.Operator {
		return remedy.Command("network", "install", "calico") + " turns it on"
	}
	return remedy.KubectlCommand("patch", "ipamconfigurations", "default", "--type", "merge", "-p",
		`{"spec":{"strictAffinity":true}}`)
}

// lookAtFlannel finds settings of Flannel that do not work with Windows nodes, see
// https://github.com/flannel-io/flannel/blob/master/Documentation/backends.md#vxlan
func lookAtFlannel(f *facts) []finding.Finding {
	const (
		windowsVNI, windowsPort = 4096, 4789
		config                  = "edit net-conf.json in ConfigMap kube-flannel-cfg"
	)
	c := f.cluster.cni.value.Flannel
	if c == nil {
		return nil
	}
	var problems found
	switch strings.ToLower(c.Backend) {
	case "vxlan":
		if c.VNI != windowsVNI {
			problems.warn("flannel's VXLAN has a number that Windows does not take: pods there are not reached",
				fmt.Sprintf("VNI is %d", c.VNI),
				fmt.Sprintf("%s: \"VNI\": %d, and restart flannel everywhere", config, windowsVNI))
		}
		if c.Port != windowsPort {
			problems.warn("flannel's VXLAN has a port that Windows does not take: pods there are not reached",
				fmt.Sprintf("Port is %d", c.Port),
				fmt.Sprintf("%s: \"Port\": %d, and restart flannel everywhere", config, windowsPort))
		}
	case "host-gw":
	default:
		problems.warn("flannel's backend does not exist on Windows: pods there get no network",
			"Backend.Type is "+orUnset(c.Backend), config+": \"Type\": \"vxlan\"")
	}
	if len(c.WindowsDaemonSets) == 0 {
		problems.warn("flannel does not run on Windows nodes: pods there get no network",
			"it has no DaemonSet for Windows",
			"run flanneld.exe of flannel's release there as a service, since no image of it is published, or use Calico in "+
				"another cluster")
	}
	return problems
}

// lookAtAntrea finds settings of Antrea that do not work with Windows nodes, see
// https://antrea.io/docs/main/docs/windows/
func lookAtAntrea(f *facts) []finding.Finding {
	c := f.cluster.cni.value.Antrea
	if c == nil {
		return nil
	}
	var problems found
	antrea := remedy.Command("network", "install", "antrea")
	install := antrea + " corrects it"
	if len(c.WindowsDaemonSets) == 0 {
		problems.warn("Antrea does not run on Windows nodes: pods there get no network", "it has no DaemonSet for Windows",
			antrea+" installs it in Antrea's version")
		return problems
	}
	if !c.Configured {
		return nil
	}
	if c.APIServer == "" {
		problems.warn("Antrea's agent on Windows lacks the address of the API server, and does not start without kube-proxy",
			"kubeAPIServerOverride in ConfigMap antrea-windows-config is not set", install)
	}
	if !c.ProxyAll {
		if len(f.cluster.cni.value.KubeProxyWindows) == 0 {
			problems.warn("neither Antrea nor kube-proxy works for Services on Windows nodes: they are not reached from there",
				"antreaProxy.proxyAll in ConfigMap antrea-windows-config is off", install)
		}
	} else if all := f.cluster.cni.value.KubeProxyWindows; len(all) > 0 {
		namespace, name, _ := strings.Cut(all[0], "/")
		problems.warn("kube-proxy runs on Windows nodes beside Antrea, which replaces it there",
			"DaemonSet "+all[0]+", and antreaProxy.proxyAll is on",
			remedy.KubectlCommand("delete", "daemonset", name, "-n", namespace))
	}
	if c.LinuxTunnel != "" && c.Tunnel != c.LinuxTunnel {
		problems.warn("Antrea's tunnels on Windows are of another type than on Linux: pods there are not reached",
			"tunnelType is "+c.Tunnel+" on Windows, and "+c.LinuxTunnel+" on Linux", install)
	}
	if c.LinuxEncryption != "" && c.LinuxEncryption != "none" {
		problems.warn("Antrea encrypts the traffic between nodes, and cannot do so on Windows: pods there are not reached",
			"trafficEncryptionMode is "+c.LinuxEncryption, "set it to none in ConfigMap kube-system/antrea-config, and "+
				"restart Antrea: "+remedy.KubectlCommand("rollout", "restart", "daemonset", "antrea-agent", "-n", "kube-system"))
	}
	return problems
}

// lookAtKubeProxy finds a cluster without a kube-proxy for Windows, or with one of another version. It
// finds nothing in a cluster with Antrea, which replaces kube-proxy.
func lookAtKubeProxy(f *facts) []finding.Finding {
	network := f.cluster.cni.value
	switch {
	case network.KubeProxyForm == cluster.KubeProxyService || network.KubeProxyForm == cluster.KubeProxyNone:
		return nil // the join makes the service, or the user runs another proxy
	case len(network.KubeProxyWindows) > 0:
		return append(f.kubeProxyFaults(), f.kubeProxyVersions()...)
	}
	if network.Antrea != nil {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Warning,
		What:     "kube-proxy does not run on Windows nodes: services are not reached from pods there",
		Evidence: "there is no DaemonSet of it for Windows",
		Remedy:   kubeProxyRemedy(network),
	}}
}

// kubeProxyRemedy returns the remedy for a missing kube-proxy. swdt installs it together with a pod network,
// so the remedy names the one that the cluster has.
func kubeProxyRemedy(c cluster.CNI) string {
	switch {
	case c.Flannel != nil:
		return remedy.Command("network", "install", "flannel", "--no-windows-flannel") + " adds it"
	case c.Calico != nil:
		return remedy.Command("network", "install", "calico") + " adds it"
	}
	return "add its DaemonSet for Windows, see https://github.com/kubernetes-sigs/sig-windows-tools; a pod network that " +
		"swdt installs brings it"
}

// kubeProxyFaults finds DaemonSets of kube-proxy for Windows that do not run.
func (f *facts) kubeProxyFaults() []finding.Finding {
	var problems found
	all := f.cluster.cni.value
	network := cni.Network("")
	switch {
	case all.Calico != nil:
		network = cni.Calico
	case all.Flannel != nil:
		network = cni.Flannel
	}
	for _, k := range all.KubeProxies {
		for _, fault := range k.Faults(f.cluster.version.value) {
			problems.warn("kube-proxy does not run on Windows nodes: "+fault.What,
				fmt.Sprintf("DaemonSet %s/%s: %s", k.Namespace, k.Name, fault.Evidence), cni.MendKubeProxy(k, network))
		}
	}
	return problems
}

// kubeProxyVersions finds DaemonSets of kube-proxy for Windows whose version does not fit the API
// server. https://kubernetes.io/releases/version-skew-policy/#kube-proxy
func (f *facts) kubeProxyVersions() []finding.Finding {
	server, err := version.ParseGeneric(f.cluster.version.value)
	if err != nil {
		return nil // lookAtVersions reports that the version is invalid
	}
	var problems found
	for i, image := range f.cluster.cni.value.KubeProxyImages {
		proxy := versionOfImage(image)
		if proxy == nil || len(skew.Versions{skew.KubeProxy: proxy, skew.APIServer: server}.Violations()) == 0 {
			continue
		}
		problems.warn("kube-proxy for Windows has another version than the cluster: services may not be reached from "+
			"pods there", fmt.Sprintf("DaemonSet %s has %s, API server %s", f.cluster.cni.value.KubeProxyWindows[i], image,
			server), fmt.Sprintf("set the DaemonSet's image to the tag of v%s", server))
	}
	return problems
}

// versionOfImage returns the version in an image's tag, such as v1.36.3-calico-hostprocess; nil if the
// tag has none.
func versionOfImage(image string) *version.Version {
	name, _, _ := strings.Cut(image, "@")
	i := strings.LastIndex(name, ":")
	if i < strings.LastIndex(name, "/") {
		return nil
	}
	tag, _, _ := strings.Cut(name[i+1:], "-")
	parsed, err := version.ParseGeneric(tag)
	if err != nil {
		return nil
	}
	return parsed
}

func orUnset(value string) string {
	if value == "" {
		return "not set"
	}
	return value
}
