package diag

import "time"

// Collectors are the known ones: to add one, add a line. What runs a command and
// keeps its output is in Commands.
func Collectors() []Collector {
	all := []Collector{
		{Name: "machine", About: "Windows, processors, memory, disk, uptime, clock", Collect: machine},
		{Name: "services", About: "services, with how those that matter are set up", Collect: services},
		{Name: "components", About: "the node's programs, their versions and hashes", Collect: components},
		{Name: "runtime", About: "the container runtime: status, pods, containers, images", Collect: containers, Timeout: time.Minute},
		clusterCollector(),
		{Name: "listeners", About: "who listens on which port", Collect: listeners},
		{Name: "connections", About: "TCP connections", Collect: connections},
		{Name: "environment", About: "the machine's environment variables", Collect: environment},
		{Name: "hosts", About: "the hosts file's entries", Collect: hosts},
		{Name: "features", About: "Windows features", Collect: features},
		{Name: "registry", About: "settings of services, network and servicing", Collect: registry},
		{Name: "configuration", About: "configuration of containerd, kubelet, kube-proxy, CNI", Collect: configuration, Timeout: time.Minute},
		{Name: "events", About: "the last events of the channels that matter", Collect: lastEvents, Timeout: time.Minute},
		{Name: "logs", About: "the ends of the logs", Collect: tails, Timeout: 2 * time.Minute},
		{Name: "firewall", About: "the firewall's rules", Collect: firewall, From: Network, Timeout: time.Minute},
		{Name: "hns", About: "networks, endpoints, load balancers, namespaces, policies", Collect: networkServices, From: Network, Timeout: time.Minute},
		{Name: "hcs", About: "compute systems", Collect: computeSystems, From: Network},
		{Name: "vfp", About: "ports of the virtual filtering platform, their counters and rules", Collect: switchPorts, From: Network, Timeout: 2 * time.Minute},
		{Name: "processes", About: "all processes", Collect: processes, From: Network},
		{Name: "windows-logs", About: "NetSetup, DISM and CBS", Collect: windowsLogs, From: Full, Timeout: 2 * time.Minute},
	}
	for _, c := range Commands() {
		all = append(all, c.collector())
	}
	return all
}

// clusterCollector is also for nodes that cannot be reached.
func clusterCollector() Collector {
	return Collector{Name: "cluster", About: "what the API server has of the node: its object, its pods, events, RuntimeClasses", Collect: ofCluster, Timeout: time.Minute}
}

// within are those that a profile has.
func within(all []Collector, p Profile) (chosen []Collector) {
	for _, c := range all {
		if c.From <= p {
			chosen = append(chosen, c)
		}
	}
	return chosen
}
