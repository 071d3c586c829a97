package combination

// The builds of Windows Server that the table names.
const (
	server2022 = 20348
	server2025 = 26100
	// windows1124H2 is the first build of Windows 11 with the forwarding of vfpext as a filter.
	windows1124H2 = 26100
)

const (
	// october2025 is the revision of Server 2025 with the cumulative update of 14 October 2025 (KB5066835).
	october2025 = 6899
	// july2024 and october2024 are the revisions of Server 2022 with KB5040437 and KB5044281.
	july2024, october2024 = 2582, 2762
	// february2024 is the first revision of Server 2022 on which calico#8529 was seen.
	february2024 = 2322
)

const (
	issues       = "https://github.com/"
	rancher2025  = issues + "rancher/rancher/issues/50915"
	calico2025   = issues + "projectcalico/calico/issues/11691"
	hcsshim2025  = issues + "microsoft/hcsshim/pull/2483"
	calicoJuly   = issues + "projectcalico/calico/issues/9019"
	windowsJuly  = issues + "microsoft/Windows-Containers/issues/516"
	calicoBGP    = issues + "projectcalico/calico/issues/8529"
	calico11     = issues + "projectcalico/calico/issues/10837"
	windows11    = issues + "microsoft/Windows-Containers/issues/608"
	cimfsShim    = issues + "microsoft/hcsshim/issues/2625"
	cimfsWindows = issues + "microsoft/Windows-Containers/issues/633"
	cimfsRuntime = issues + "containerd/containerd/issues/12982"
	pause2025    = issues + "kubernetes-sigs/windows-testing/pull/557"
	pauseCommit  = issues + "containerd/containerd/commit/05d3b3158"
	platforms    = issues + "containerd/platforms/releases/tag/v1.0.0-rc.2"
	matcher      = issues + "docker/for-win/issues/13986"
	localTwin    = issues + "kubernetes/kubernetes/issues/130963"
	modify2025   = issues + "kubernetes/kubernetes/issues/131466"
)

// Table returns the combinations. To add one, add a row with the sources that report it, and a case to
// TestEachCombination.
func Table() []Row {
	return append(ofNetworks(), ofPrograms()...)
}

func ofNetworks() []Row {
	const day = "2026-11-29"
	return []Row{
		{
			ID: "calico-server-2025", Windows: Windows{Build: server2025}, Network: Network{Name: "calico"},
			What: "Calico's project does not support Windows Server 2025: pods may get no network",
			Remedy: "use Windows Server 2022 for this node, or try Calico there on a node that you can do without: one " +
				"report says that its pods do have a network",
			Sources: []string{calico2025, rancher2025, windows11}, Seen: day,
		},
		{
			ID: "overlay-server-2025", Windows: Windows{Build: server2025, Before: october2025},
			Network: Network{Overlay: true},
			What:    "overlay networks (VXLAN) do not work on Windows Server 2025 before the update of October 2025",
			Remedy:  "install a cumulative update of October 2025 or later (build 26100.6899, KB5066835)",
			Sources: []string{rancher2025, hcsshim2025}, Seen: day,
		},
		{
			ID: "calico-july-2024", Windows: Windows{Build: server2022, From: july2024, Before: october2024},
			Network: Network{Name: "calico", Overlay: true},
			What:    "pods on Calico's VXLAN have no network on Windows Server 2022 with the updates of July to September 2024",
			Remedy:  "install a cumulative update of October 2024 or later (build 20348.2762, KB5044281)",
			Sources: []string{windowsJuly, calicoJuly}, Seen: day,
		},
		{
			ID: "calico-bgp-2024", Windows: Windows{Build: server2022, From: february2024, Before: october2024},
			Network: Network{Name: "calico", BGP: true},
			What:    "a node with Calico's BGP is not reached on Windows Server 2022 with the updates of February to September 2024",
			Remedy:  "install a cumulative update of October 2024 or later (build 20348.2762, KB5044281)",
			Sources: []string{calicoBGP}, Seen: day,
		},
		{
			ID: "calico-windows-11", Windows: Windows{Build: windows1124H2, Client: true}, Network: Network{Name: "calico"},
			What: "Calico's pods have no network on Windows 11 since 24H2, whose virtual switch has another extension than " +
				"Windows Server's",
			Remedy: "use Windows Server 2022", Sources: []string{calico11, windows11}, Seen: day,
		},
		{
			ID: "local-endpoint-deleted", Kubernetes: []Range{{"1.31.0", "1.31.9"}, {"1.32.0", "1.32.5"}, {"1.33.0", "1.33.1"}},
			What:   "this kube-proxy deletes the HNS endpoints of pods of its own node, which then have no network",
			Remedy: "use a later release of the same minor version: 1.31.9, 1.32.5 or 1.33.1", Sources: []string{localTwin},
			Seen: day,
		},
		{
			ID: "load-balancer-not-modified", Windows: Windows{Build: server2025},
			Kubernetes: []Range{{"1.31.0", "1.32.6"}, {"1.33.0", "1.33.2"}},
			What:       "this kube-proxy does not follow changed endpoints of Services on Windows Server 2025",
			Remedy:     "use Kubernetes 1.32.6, 1.33.2 or later", Sources: []string{modify2025}, Seen: day,
		},
	}
}

func ofPrograms() []Row {
	const day = "2026-11-29"
	return []Row{
		{
			ID: "cimfs", Snapshotter: "cimfs",
			What: "Windows crashes with containerd's snapshotter cimfs while it pulls many images: seen on Server 2022, and " +
				"no fix is known",
			Remedy:  "leave the snapshotter out of containerd's configuration: the default is windows",
			Sources: []string{cimfsShim, cimfsWindows, cimfsRuntime}, Seen: day,
		},
		{
			ID: "images-server-2025", Windows: Windows{Build: server2025},
			Containerd: []Range{{"1.6.0", "1.6.23"}, {"1.7.0", "1.7.6"}},
			What:       "this containerd finds no image for Windows Server 2022 on Server 2025, although it would run there",
			Remedy:     "use containerd 2.1.6 or later", Sources: []string{matcher, platforms}, Seen: day,
		},
		{
			ID: "choice-server-2025", Windows: Windows{Build: server2025},
			Containerd: []Range{{"1.6.23", "1.7.0"}, {"1.7.6", "2.1.6"}},
			What: "this containerd may take an image's part for Server 2022 on Server 2025: it knows no later release, and goes " +
				"by the revision or by the order in the index",
			Remedy: "use containerd 2.1.6 or later", Sources: []string{matcher, platforms}, Seen: day,
		},
		{
			ID: "sandbox-server-2025", Windows: Windows{Build: server2025}, Containerd: []Range{{"", "2.3.0"}}, HyperV: true,
			DefaultSandbox: true,
			What:           "pods that Hyper-V isolates do not start on Server 2025: this containerd's sandbox image has no part for it",
			Remedy:         "use containerd 2.3 or later, or set spec.kubernetes.containerd.pauseImage to registry.k8s.io/pause:3.10.2",
			Sources:        []string{pause2025, pauseCommit}, Seen: day,
		},
	}
}
