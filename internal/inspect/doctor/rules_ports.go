package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

func portRules() []Rule {
	ports := []string{"ports"}
	return []Rule{
		{
			ID: "excluded-ports", Title: "no port of Kubernetes is excluded", Severity: finding.Error, Needs: ports,
			Link: docsPorts,
			Means: "Windows lets no program listen on an excluded port: kubelet or kube-proxy exits with a " +
				"forbidden access, although the port is free.",
			Remedy: "list the excluded ranges: `swdt exec -- netsh int ipv4 show excludedportrange protocol=tcp`; " +
				"`swdt exec -- net stop winnat` and `swdt exec -- net start winnat`, or a reboot, release the ranges " +
				"of Hyper-V", look: lookAtExcludedPorts,
		},
		{
			ID: "dynamic-ports", Title: "the dynamic ports are apart from NodePorts", Severity: finding.Warning,
			Needs: ports, Link: docsPorts,
			Means: "Windows takes the ports of outgoing connections, and reserves ranges for load balancers, from " +
				"the dynamic ports: if they overlap with NodePorts (30000-32767), Services may get no port.",
			Remedy: "`swdt exec -- netsh int ipv4 set dynamicport tcp start=34000 num=31536`", look: lookAtDynamicPorts,
		},
		{
			ID: "mtu", Title: "the virtual adapters' MTU fits the network", Severity: finding.Warning,
			Needs: []string{"interfaces"}, Link: docsDebug,
			Means: "Small packets pass and large ones are lost: connections open and then hang, TLS handshakes time out.",
			Remedy: "`swdt exec -- netsh int ipv4 set subinterface NAME mtu=N store=persistent`; if the pod network " +
				"is an overlay, set its MTU to 50 less", look: lookAtMTU,
		},
		{
			ID: "kubelet-port", Title: "kubelet listens on its port", Severity: finding.Error,
			Needs: []string{"services", "listeners"}, Link: docsKubelet,
			Means:  "kubectl logs and exec, metrics and the API server's probes need kubelet's port.",
			Remedy: "find the cause: `swdt logs kubelet`", look: lookAtKubeletPort,
		},
		{
			ID: "kubelet-firewall", Title: "the firewall lets the API server reach kubelet", Severity: finding.Warning,
			Needs: []string{"firewall"}, Link: docsWindows,
			Means: "The node is Ready, since kubelet connects to the API server itself; kubectl logs and exec, and " +
				"metrics, time out.",
			Remedy: remedy.Command("exec", "--", "netsh", "advfirewall", "firewall", "add", "rule", "name=kubelet",
				"dir=in", "action=allow", "protocol=TCP", "localport=10250"),
			look: lookAtKubeletFirewall,
		},
		{
			ID: "vxlan-firewall", Title: "the firewall lets VXLAN through", Severity: finding.Warning,
			Needs: []string{"firewall", "podNetwork"}, Link: docsCalico,
			Means: "Pods of this node reach each other, but not the pods of other nodes.",
			Remedy: remedy.Command("exec", "--", "netsh", "advfirewall", "firewall", "add", "rule", "name=vxlan",
				"dir=in", "action=allow", "protocol=UDP", "localport=4789"),
			look: lookAtVXLANFirewall,
		},
	}
}

// fixedPorts returns the ports on which Kubernetes' programs listen on every node, with their uses.
func fixedPorts() map[uint16]string {
	return map[uint16]string{10250: "kubelet", 10248: "kubelet's health", 10256: "kube-proxy's health",
		10249: "kube-proxy's metrics"}
}

const firstNodePort, lastNodePort = 30000, 32767

func lookAtExcludedPorts(f *Facts) (all []finding.Finding) {
	for _, r := range f.Ports.Value.Excluded {
		if r.Administered { // An administrator reserved the range, perhaps for this program.
			continue
		}
		for _, port := range []uint16{10248, 10249, 10250, 10256} {
			if r.has(port) {
				all = append(all, finding.New("excluded: "+r.String(), "Windows lets no program listen on port %d, %s",
					port, fixedPorts()[port]))
			}
		}
		if r.First <= lastNodePort && r.Last >= firstNodePort {
			all = append(all, finding.New("excluded: "+r.String(), "NodePorts are excluded").As(finding.Warning).
				Remedied("move the dynamic ports, from which Hyper-V takes its ranges, and reboot: "+
					"`swdt exec -- netsh int ipv4 set dynamicport tcp start=34000 num=31536`"))
		}
	}
	return all
}

// fewPorts is Windows' default number of dynamic ports, up to which a node is reported. Each load balancer of a node
// takes 64 dynamic ports, so they suffice for about 225 Services (Azure/AgentBaker, Adjust-DynamicPortRange).
const fewPorts = 16384

func lookAtDynamicPorts(f *Facts) []finding.Finding {
	first, count := int(f.Ports.Value.DynamicFirst), f.Ports.Value.DynamicCount
	seen := fmt.Sprintf("dynamic ports: %d-%d", first, first+count-1)
	switch {
	case first <= lastNodePort && first+count > firstNodePort:
		return one(finding.New(seen, "the dynamic ports overlap with NodePorts"))
	case count <= fewPorts:
		return one(finding.New(seen, "there are few dynamic ports: Services and outgoing connections may get none"))
	}
	return nil
}

// minMTU is the MTU that IPv6 and most tunnels require.
const minMTU = 1280

func lookAtMTU(f *Facts) (all []finding.Finding) {
	physical := 0
	for _, i := range *f.Interfaces.Value {
		if i.MTU < minMTU {
			all = append(all, finding.New(fmt.Sprintf("%s: %d", i.Name, i.MTU), "the MTU of %s is very small", i.Name))
		}
		if !i.virtual() && (physical == 0 || i.MTU < physical) {
			physical = i.MTU
		}
	}
	for _, i := range *f.Interfaces.Value {
		if i.virtual() && physical > 0 && i.MTU > physical {
			all = append(all, finding.New(fmt.Sprintf("%s: %d, the machine's own adapter: %d", i.Name, i.MTU,
				physical), "%s sends larger packets than the network carries", i.Name))
		}
	}
	return all
}

// virtual reports whether the adapter belongs to a Hyper-V switch. Windows names such an adapter
// "vEthernet (…)".
func (i Interface) virtual() bool { return strings.HasPrefix(folded(i.Name), "vethernet") }

const kubeletPort = 10250

func (f *Facts) kubeletPort() uint16 {
	if port, err := strconv.ParseUint(f.flag("port"), 10, 16); err == nil {
		return uint16(port)
	}
	if f.Kubelet.Value != nil && f.Kubelet.Value.Port != nil {
		return uint16(*f.Kubelet.Value.Port)
	}
	return kubeletPort
}

func lookAtKubeletPort(f *Facts) []finding.Finding {
	kubelet, port := f.service("kubelet"), f.kubeletPort()
	if !kubelet.Running() {
		return nil // another rule reports that kubelet does not run
	}
	listens := false
	for _, l := range *f.Listeners.Value {
		if l.Port != port {
			continue
		}
		listens = true
		if name := folded(l.Process); name != "" && name != "kubelet.exe" &&
			name != folded(baseOf(programOf(kubelet, "kubelet.exe"))) {
			return one(finding.New(fmt.Sprintf("%s, process %d: %s", l.Address, l.PID, l.Image),
				"kubelet's port %d is in use by %s", port, l.Process).
				Remedied("stop that program, or give it another port, and restart kubelet"))
		}
	}
	if listens {
		return nil
	}
	return one(finding.New("the service kubelet is "+ui.Words(kubelet.State),
		"no process listens on kubelet's port %d", port))
}

func baseOf(path string) string { return path[strings.LastIndexAny(path, `\/`)+1:] }

func lookAtKubeletFirewall(f *Facts) []finding.Finding {
	return f.lookAtFirewall("tcp", f.kubeletPort(), "kubelet")
}

func lookAtVXLANFirewall(f *Facts) []finding.Finding {
	network := f.Network.Value
	vxlan := network.Flannel != nil && strings.EqualFold(network.Flannel.Backend, "vxlan")
	if network.Calico != nil {
		vxlan = vxlan || slices.ContainsFunc(network.Calico.Pools, preflight.HasVXLAN)
	}
	if !vxlan {
		return nil
	}
	return f.lookAtFirewall("udp", 4789, "VXLAN")
}

// lookAtFirewall finds a port that the firewall does not let in.
func (f *Facts) lookAtFirewall(protocol string, port uint16, what string) []finding.Finding {
	allowed, blocks := preflight.Inbound(*f.Firewall.Value, protocol, port)
	switch {
	case blocks != nil:
		return one(finding.New("rule "+blocks.Name, "a firewall rule blocks %s port %d, %s", strings.ToUpper(protocol),
			port, what).Remedied("%s", preflight.DeleteRule(blocks.Name)))
	case allowed:
		return nil
	}
	return one(finding.New("", "no firewall rule lets %s port %d in, %s", strings.ToUpper(protocol), port, what))
}

// within reports whether an address is in a range such as 10.96.0.0/12.
func within(cidr, address string) bool {
	prefix, err := netip.ParsePrefix(cidr)
	ip, ipErr := netip.ParseAddr(address)
	return err == nil && ipErr == nil && prefix.Contains(ip)
}
