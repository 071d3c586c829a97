package preflight

import (
	"github.com/swdt-dev/swdt/internal/cluster"
)

// plantedOnTunnels are problems of the node's firewall and of Antrea.
func plantedOnTunnels() map[string]planted {
	return map[string]planted{
		"a firewall without a rule for VXLAN": {func(f *facts) { f.node.firewall.value = []FirewallRule{} },
			[]string{"firewall warning: does not let UDP port 4789 in, VXLAN"}},
		"a firewall that blocks VXLAN": {func(f *facts) {
			f.node.firewall.value = append(f.node.firewall.value, blocking("udp", "4000-5000"))
		}, []string{"firewall warning: blocks UDP port 4789"}},
		"a firewall that blocks the kubelet": {func(f *facts) {
			f.node.firewall.value = append(f.node.firewall.value, blocking("tcp", "80, 10250"))
		}, []string{"firewall warning: rule lock"}},
		"a firewall that is off": {func(f *facts) { f.node.firewall = factOf([]FirewallRule(nil), ErrFirewallOff) }, nil},
		"a firewall without a list of rules": {func(f *facts) {
			f.node.firewall = factOf([]FirewallRule(nil), NoRulesError{})
		}, nil},
		"a firewall for Geneve": {func(f *facts) {
			antreaIs(func(*cluster.CNI) {})(f)
			f.node.firewall.value = []FirewallRule{}
		}, []string{"firewall warning: does not let UDP port 6081 in, Geneve"}},
		"Antrea with all its settings": {antreaIs(func(*cluster.CNI) {}), nil},
		"Antrea without the API server's address": {antreaIs(func(c *cluster.CNI) { c.Antrea.APIServer = "" }),
			[]string{"antrea warning: kubeAPIServerOverride in ConfigMap antrea-windows-config is not set"}},
		"Antrea beside kube-proxy": {antreaIs(func(c *cluster.CNI) { c.KubeProxyWindows = []string{"kube-system/proxy"} }),
			[]string{"antrea warning: DaemonSet kube-system/proxy, and antreaProxy.proxyAll is on"}},
		"Antrea with kube-proxy instead of its own": {antreaIs(func(c *cluster.CNI) {
			c.Antrea.ProxyAll, c.KubeProxyWindows = false, []string{"kube-system/proxy"}
		}), nil},
		"Antrea without any proxy": {antreaIs(func(c *cluster.CNI) { c.Antrea.ProxyAll = false }),
			[]string{"antrea warning: antreaProxy.proxyAll in ConfigMap antrea-windows-config is off"}},
		"Antrea with two types of tunnels": {antreaIs(func(c *cluster.CNI) { c.Antrea.LinuxTunnel = "gre" }),
			[]string{"antrea warning: tunnelType is geneve on Windows, and gre on Linux"}},
		"Antrea with encryption": {antreaIs(func(c *cluster.CNI) { c.Antrea.LinuxEncryption = "wireGuard" }),
			[]string{"antrea warning: trafficEncryptionMode is wireGuard"}},
	}
}

func blocking(protocol, ports string) FirewallRule {
	return FirewallRule{Name: "lock", Protocol: protocol, Ports: ports}
}

// antreaIs returns a change of the facts to those of an Antrea that works with Windows, but for one change.
func antreaIs(change func(*cluster.CNI)) func(*facts) {
	return func(f *facts) {
		f.cluster.cni.value = cluster.CNI{Antrea: &cluster.Antrea{WindowsDaemonSets: []string{"w"}, Configured: true,
			APIServer: "10.0.0.1:6443", ProxyAll: true, Tunnel: "geneve", LinuxTunnel: "geneve", LinuxEncryption: "none"}}
		f.node.firewall.value = append(f.node.firewall.value, FirewallRule{Name: "Geneve", Allow: true, Protocol: "udp",
			Ports: "6081"})
		change(&f.cluster.cni.value)
	}
}
