package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func hnsRules() []Rule {
	state := []string{"hns"}
	return []Rule{
		{
			ID: "hns-network", Title: "the pod network exists in Windows", Severity: finding.Error,
			Needs: []string{"hns", "cni"}, Link: docsDebug,
			Means: "The pod network's agent must create it at every boot: until it exists, no pod gets an endpoint, " +
				"and kube-proxy waits.",
			Remedy: "read the log of the pod network's agent: `swdt logs calico` (or flannel, antrea); " +
				"`swdt events --channel hns`", look: lookAtHNSNetwork,
		},
		{
			ID: "hns-orphan-endpoints", Title: "every endpoint belongs to a pod", Severity: finding.Warning,
			Needs: []string{"hns", "podNetworks"}, Link: docsDebug,
			Means: "Pods were removed and their endpoints were not: their addresses stay in use, and traffic for " +
				"the next pod with such an address may be lost.",
			Remedy: "drain the node, stop kubelet and kube-proxy, and restart the service hns: " +
				"`swdt exec -- net stop hns`, then `swdt exec -- net start hns`", look: lookAtOrphanEndpoints,
		},
		{
			ID: "hns-missing-endpoints", Title: "every pod has its endpoint", Severity: finding.Error,
			Needs: []string{"hns", "podNetworks"}, Link: docsDebug,
			Means: "The pod runs without a network: it cannot be reached, and it reaches nothing.",
			Remedy: "delete the pod, so that it is created again; `swdt events --channel hns` prints what happened " +
				"to its endpoint", look: lookAtMissingEndpoints,
		},
		{
			ID: "hns-loadbalancers", Title: "load balancers have endpoints that exist", Severity: finding.Error,
			Needs: state, Link: docsDebug,
			Means: "Traffic to the Service's address is lost: the Service has no pods, or kube-proxy did not follow " +
				"a change of its pods.",
			Remedy: "`kubectl get endpointslices` shows whether the Service has pods; if so, restart kube-proxy and " +
				"see `swdt logs kube-proxy`", look: lookAtEmptyBalancers,
		},
		{
			ID: "hns-source-vip", Title: "load balancers have this node's source address", Severity: finding.Error,
			Needs: state, Link: docsDebug,
			Means: "In an overlay, pods of other nodes answer to the source VIP: if it is missing or not on this " +
				"node, Services time out although pods can be reached.",
			Remedy: "set kube-proxy's --source-vip to the address of an endpoint of this node (Calico_ep for " +
				"Calico), and restart kube-proxy", look: lookAtSourceVIP,
		},
		{
			ID: "hns-duplicate-address", Title: "no two endpoints have the same address", Severity: finding.Error,
			Needs: state, Link: docsDebug,
			Means:  "Connections to this address reach sometimes one endpoint, sometimes the other.",
			Remedy: "delete both pods, so that they are created again; look for two nodes with the same pod CIDR",
			look:   lookAtDuplicates,
		},
		{
			ID: "orphan-shims", Title: "every shim belongs to a pod", Severity: finding.Warning,
			Needs: []string{"orphans"},
			Means: "The runtime has lost track of a container that still runs: it uses CPU, memory and files until " +
				"it is killed.",
			Remedy: "`swdt ps --orphans` lists them; `swdt exec -- taskkill /t /f /pid PID` kills one",
			look:   lookAtOrphans,
			Link:   "https://github.com/microsoft/hcsshim",
		},
	}
}

// maxListed is the maximum number of names that the evidence of a finding lists.
const maxListed = 4

// some joins the first names, and counts the rest.
func some(all []string) string {
	text := strings.Join(all[:min(maxListed, len(all))], ", ")
	if more := len(all) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// pluginsWithNetwork returns the CNI plugins that need an HNS network: the plugin's agent creates
// the network, or the plugin's configuration names the network. Whether other plugins need an HNS
// network is unknown.
func pluginsWithNetwork() []string {
	return []string{"calico", "win-overlay", "win-bridge", "sdnoverlay", "sdnbridge", "flannel", "antrea", "azure-vnet"}
}

// lookAtHNSNetwork ignores the network "nat", which Windows itself creates as soon as
// containers are enabled.
func lookAtHNSNetwork(f *Facts) []finding.Finding {
	files := f.CNI.Value.Files
	if len(files) == 0 || !slices.ContainsFunc(files[0].Plugins,
		func(p string) bool { return containsFolded(pluginsWithNetwork(), p) }) {
		// Another rule reports a missing configuration. Other plugins may need no network.
		return nil
	}
	var names []string
	for _, n := range f.HNS.Value.Networks {
		if !strings.EqualFold(n.Name, "nat") {
			return nil
		}
		names = append(names, n.Name+" ("+n.Type+")")
	}
	seen := "there are no networks"
	if len(names) > 0 {
		seen = "there is only " + some(names)
	}
	return one(finding.New(seen, "the pod network %s is configured, and Windows has no network for it",
		f.CNI.Value.Files[0].Name))
}

func (f *Facts) knownPods() hns.Known { return hns.Known{Here: *f.PodNetworks.Value, Runtime: true} }

func lookAtOrphanEndpoints(f *Facts) []finding.Finding {
	known, state := f.knownPods(), f.HNS.Value
	var orphans []string
	for _, e := range state.Endpoints {
		if !e.Remote && forPod(*state, e) && known.PodOf(e) == hns.None {
			orphans = append(orphans, e.Name+" "+e.IP())
		}
	}
	if len(orphans) == 0 {
		return nil
	}
	return one(finding.New(some(orphans), "%s of pods that the container runtime does not list",
		finding.Several(len(orphans), "endpoint")))
}

// forPod reports whether an endpoint was created for a pod: the endpoint is in a namespace for
// containers, or its name begins with a pod sandbox's id. The pod network also creates endpoints
// for its own use, such as Calico_ep.
func forPod(s hns.State, e hns.Endpoint) bool {
	in := slices.ContainsFunc(s.Namespaces, func(n hns.Namespace) bool {
		return n.ID == e.Namespace && strings.HasPrefix(n.Type, "Guest")
	})
	return in || startsWithID(e.Name)
}

func startsWithID(name string) bool {
	const digits = 64
	return len(name) >= digits && strings.Trim(name[:digits], "0123456789abcdef") == ""
}

func lookAtMissingEndpoints(f *Facts) (all []finding.Finding) {
	known, state := f.knownPods(), f.HNS.Value
	for _, p := range *f.PodNetworks.Value {
		if len(p.IPs) == 0 { // the pod has ended or is on the host network
			continue
		}
		if !slices.ContainsFunc(state.Endpoints, func(e hns.Endpoint) bool { return known.PodOf(e) == p.String() }) {
			all = append(all, finding.New("its address is "+strings.Join(p.IPs, ", "), "pod %s has no endpoint", p))
		}
	}
	return all
}

// address returns the addresses and ports of a load balancer, by which people identify load
// balancers.
func address(l hns.LoadBalancer) string {
	text := strings.Join(l.VIPs, ",")
	if text == "" {
		text = "node port"
	}
	for _, p := range l.Ports {
		text += fmt.Sprintf(":%d/%s", p.External, p.Protocol)
	}
	return text
}

func lookAtEmptyBalancers(f *Facts) (all []finding.Finding) {
	var empty, stale []string
	for _, l := range f.HNS.Value.LoadBalancers {
		missing := slices.ContainsFunc(l.Endpoints, func(id string) bool {
			_, ok := f.HNS.Value.Endpoint(id)
			return !ok
		})
		switch {
		case len(l.Endpoints) == 0:
			empty = append(empty, address(l))
		case missing:
			stale = append(stale, address(l))
		}
	}
	if len(empty) > 0 {
		all = append(all, finding.New(some(empty), "%d load %s no endpoints", len(empty),
			have("balancer", len(empty))).As(finding.Warning))
	}
	if len(stale) > 0 {
		all = append(all, finding.New(some(stale), "%d load %s endpoints that do not exist", len(stale),
			have("balancer", len(stale))))
	}
	return all
}

func have(noun string, n int) string {
	if n == 1 {
		return noun + " has"
	}
	return noun + "s have"
}

func lookAtSourceVIP(f *Facts) (all []finding.Finding) {
	state := f.HNS.Value
	overlay := slices.ContainsFunc(state.Networks,
		func(n hns.Network) bool { return strings.EqualFold(n.Type, "Overlay") })
	if !overlay {
		return nil
	}
	var without []string
	foreign := map[string][]string{}
	for _, l := range state.LoadBalancers {
		switch {
		case l.SourceVIP == "":
			without = append(without, address(l))
		case !slices.ContainsFunc(state.Endpoints,
			func(e hns.Endpoint) bool { return !e.Remote && e.IP() == l.SourceVIP }):
			foreign[l.SourceVIP] = append(foreign[l.SourceVIP], address(l))
		}
	}
	if len(without) > 0 {
		all = append(all, finding.New(some(without), "%d load %s no source VIP", len(without),
			have("balancer", len(without))))
	}
	for vip, balancers := range foreign {
		all = append(all,
			finding.New(some(balancers), "%d load %s the source VIP %s, which no endpoint of this node has",
				len(balancers), have("balancer", len(balancers)), vip))
	}
	slices.SortFunc(all, func(a, b finding.Finding) int { return strings.Compare(a.What, b.What) })
	return all
}

func lookAtDuplicates(f *Facts) (all []finding.Finding) {
	type key struct{ network, ip string }
	first := map[key]string{}
	for _, e := range f.HNS.Value.Endpoints {
		at := key{e.Network, e.IP()}
		if at.ip == "" {
			continue
		}
		if other, ok := first[at]; ok {
			all = append(all, finding.New(other+", "+e.Name, "two endpoints have the address %s", at.ip))
			continue
		}
		first[at] = e.Name
	}
	return all
}

func lookAtOrphans(f *Facts) []finding.Finding {
	var orphans []string
	for _, o := range *f.Orphans.Value {
		orphans = append(orphans, fmt.Sprintf("%s (process %d: %s)", o.Name, o.PID, o.Why))
	}
	if len(orphans) == 0 {
		return nil
	}
	return one(finding.New(some(orphans), "%d %s of the container runtime %s to no pod", len(orphans),
		processes(len(orphans)), belong(len(orphans))))
}

func processes(n int) string {
	if n == 1 {
		return "process"
	}
	return "processes"
}

func belong(n int) string {
	if n == 1 {
		return "belongs"
	}
	return "belong"
}
