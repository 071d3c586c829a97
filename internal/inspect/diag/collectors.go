package diag

import "time"

// Collectors returns all collectors. To add a collector, add an entry. The collectors that
// run a command and store its output are in Commands.
func Collectors() []Collector {
	all := []Collector{
		{Name: "machine", About: "Windows, processors, memory, disk, uptime, clock", Collect: machine},
		{Name: "services", About: "services, with the settings of Kubernetes' services", Collect: services},
		{Name: "components", About: "the node's programs, their versions and hashes", Collect: components},
		{Name: "runtime", About: "the container runtime: status, pods, containers, images", Collect: containers,
			Timeout: time.Minute},
		clusterCollector(),
		{Name: "listeners", About: "listening ports and their processes", Collect: listeners},
		{Name: "connections", About: "TCP connections", Collect: connections},
		{Name: "environment", About: "the machine's environment variables", Collect: environment},
		{Name: "hosts", About: "the hosts file's entries", Collect: hosts},
		{Name: "features", About: "Windows features", Collect: features},
		{Name: "registry", About: "settings of services, network and servicing", Collect: registry},
		{Name: "configuration", About: "configuration of containerd, kubelet, kube-proxy, CNI", Collect: configuration,
			Timeout: time.Minute},
		{Name: "events", About: "the last events of the channels that matter", Collect: lastEvents,
			Timeout: time.Minute},
		{Name: "logs", About: "the ends of the logs", Collect: tails, Timeout: 2 * time.Minute},
		{Name: "firewall", About: "the firewall's rules", Collect: firewall, From: Network, Timeout: time.Minute},
		{Name: "hns", About: "networks, endpoints, load balancers, namespaces, policies", Collect: networkServices,
			From: Network, Timeout: time.Minute},
		{Name: "hcs", About: "compute systems", Collect: computeSystems, From: Network},
		{Name: "vfp", About: "ports of the virtual filtering platform, their counters and rules", Collect: switchPorts,
			From: Network, Timeout: 2 * time.Minute},
		{Name: "processes", About: "all processes", Collect: processes, From: Network},
		{Name: "dump", About: "for what containerd, its shims, kubelet and kube-proxy wait", Collect: hangs, From: Full,
			Timeout: time.Minute},
		{Name: "windows-logs", About: "NetSetup, DISM and CBS", Collect: windowsLogs, From: Full,
			Timeout: 2 * time.Minute},
	}
	for _, c := range Commands() {
		all = append(all, c.collector())
	}
	return all
}

// clusterCollector returns the collector that also runs for nodes that cannot be reached.
func clusterCollector() Collector {
	return Collector{Name: "cluster",
		About: "the API server's objects about the node: Node, pods, events, RuntimeClasses", Collect: ofCluster,
		Timeout: time.Minute}
}

// within returns the collectors that a profile includes.
func within(all []Collector, p Profile) (chosen []Collector) {
	for _, c := range all {
		if c.From <= p {
			chosen = append(chosen, c)
		}
	}
	return chosen
}
