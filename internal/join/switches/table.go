package switches

import "strings"

// Builds of Windows Server.
const (
	server2019 = 17763
	server2022 = 20348
	server23H2 = 25398
	server2025 = 26100
)

// Sources, as they were read in November 2026.
const (
	agentBaker = "https://github.com/Azure/AgentBaker/blob/06836ee/vhdbuilder/packer/windows/windows_settings.json"
	// agentBaker23H2 is an earlier commit: AKS ended Server 23H2.
	agentBaker23H2 = "https://github.com/Azure/AgentBaker/blob/03c63687/vhdbuilder/packer/windows/windows_settings.json"
	azureCNS       = "https://github.com/Azure/azure-container-networking/blob/master/platform/os_windows.go"
	bugcheck       = "https://github.com/Azure/AgentBaker/pull/7361"
	december       = "https://github.com/Azure/AgentBaker/pull/7528"
	imageRoles     = "https://github.com/kubernetes-sigs/image-builder/tree/main/images/capi/ansible/windows"
	image1798      = "https://github.com/kubernetes-sigs/image-builder/pull/1798"
	image2025      = "https://github.com/kubernetes-sigs/image-builder/commit/0ed6c7c5b"
	wmco           = "https://github.com/openshift/windows-machine-config-operator"
	sdn            = "https://github.com/microsoft/SDN"
	gmsa30         = "https://github.com/kubernetes-sigs/windows-gmsa/issues/30"
	padding        = "https://msrc.microsoft.com/update-guide/vulnerability/CVE-2013-3900"
)

// Installers.
const (
	aks          = "AKS"
	imageBuilder = "image-builder"
)

// Table returns the settings of all installers.
func Table() []Setting {
	return append(ofAKS(), ofOthers()...)
}

// month has the switches that AKS turns on since the update of a month.
type month struct {
	since string
	key   string
	names string // separated by spaces
}

// months returns the switches of Server 2022 that AKS sets to 1.
func months() []month {
	return []month{
		{"2022-10B", Policy, "2629306509"},
		{"2023-04B", Policy, "3508525708"},
		{"2023-04B", HNS, "HnsPolicyUpdateChange HnsNatAllowRuleUpdateChange HnsAclUpdateChange"},
		{"2023-05B", Policy, "1995963020 189519500"},
		{"2023-05B", HNS, "HnsNpmRefresh"},
		{"2023-05B", VFP, "VfpEvenPodDistributionIsEnabled"},
		{"2023-06B", Policy, "3398685324"},
		{"2023-07B", HNS, "HnsNodeToClusterIpv6 HNSNpmIpsetLimitChange HNSLbNatDupRuleChange"},
		{"2023-07B", VFP, "VfpIpv6DipsPrintingIsEnabled"},
		{"2023-08B", Policy, "87798413"},
		{"2023-08B", HNS, "HNSUpdatePolicyForEndpointChange HNSFixExtensionUponRehydration"},
		{"2023-09B", Policy, "4289201804 1355135117 2214038156"},
		{"2023-09B", HNS, "RemoveSourcePortPreservationForRest"},
		{"2023-10B", Policy, "1673770637"},
		{"2023-10B", HNS, "FwPerfImprovementChange"},
		{"2023-10B", VFP, "VfpNotReuseTcpOneWayFlowIsEnabled"},
		{"2023-11B", Policy, "527922829 2193453709 3331554445"},
		{"2023-11B", HNS, "CleanupReservedPorts"},
		{"2024-02B", Policy, "1327590028"},
		{"2024-03B", Policy, "1114842764 4154935436 124082829"},
		{"2024-03B", HNS, "HnsPreallocatePortRange"},
		{"2024-04B", Policy, "3744292492 3838270605 851795084 26691724 3834988172 1535854221 3632636556 1552261773 4186914956 " +
			"3173070476 3958450316"},
		{"2024-06B", Policy, "2540111500 50261647 1475968140"},
		{"2024-07B", Policy, "747051149"},
		{"2024-08B", Policy, "260097166"},
		{"2024-09B", Policy, "4288867982"},
		{"2024-11B", Policy, "1825620622 684111502 1455863438"},
		{"2025-02B", Policy, "1971481230"},
		{"2025-04B", Policy, "569665166 3785507983 2263771791"},
		{"2025-06B", Policy, "424033934"},
		{"2025-07B", Policy, "1846288527"},
		{"2025-08B", Policy, "222700687"},
		{"2025-11B", Policy, "2113538702 2854356110 300542606"},
		{"2026-05B", Policy, "4173449358 1491587726 3658215055"},
	}
}

// months23H2 returns the switches of Server 23H2 that AKS set to 1.
func months23H2() []month {
	return []month{
		{"2024-08B", Policy, "1800977551 3197800078 340036751 2020509326"},
		{"2025-02B", Policy, "1155685006"},
		{"2025-04B", Policy, "502826639 677922958"},
		{"2025-05B", HNS, "FwPerfImprovementChange"},
		{"2025-05B", Policy, "2336372879"},
		{"2025-06B", Policy, "296495759"},
		{"2025-07B", Policy, "502146190"},
		{"2025-10B", Policy, "403177103"},
		{"2025-11B", Policy, "1898182287 916190351 3063948942"},
	}
}

// meanings returns what the source itself says about a switch, by name.
func meanings() map[string]string {
	return map[string]string{
		"2629306509": "a fix of wcifs",
	}
}

func ofAKS() (all []Setting) {
	add := func(windows int, since, key, name, value, means, source string) {
		all = append(all, Setting{Key: key, Name: name, Value: value, Windows: windows, Installer: aks, Since: since, Means: means,
			Source: source})
	}
	for _, m := range months() {
		for _, name := range strings.Fields(m.names) {
			add(server2022, m.since, m.key, name, "1", meanings()[name], agentBaker)
		}
	}
	for _, m := range months23H2() {
		for _, name := range strings.Fields(m.names) {
			add(server23H2, m.since, m.key, name, "1", "", agentBaker23H2)
		}
	}
	add(server2022, "2023-11B", containers, "DeltaHivePolicy", "2", "registry hives of layers as differences, without rollups",
		agentBaker)
	add(server2022, "2025-10B", Policy, "140377743", "0", "", december)
	for _, key := range []string{wintrust, wintrust32} {
		add(server2022, "", key, "EnableCertPaddingCheck", "1", "checks the padding of signatures: CVE-2013-3900", padding)
	}
	for _, name := range []string{"1861198479", "1451608719"} {
		add(server2025, "2026-05B", Policy, name, "1", "", agentBaker)
	}
	add(server2025, "2026-07B", Policy, "908168846", "1", "", agentBaker)
	add(0, "", HNS, "EnableCompartmentNamespace", "1", "names of SMB shares resolve in pods of containerd", gmsa30)
	return all
}

// ofOthers returns the settings of other installers, and those of AKS that are not in its table of settings.
func ofOthers() []Setting {
	return []Setting{
		{Key: HNS, Name: "SDNRemoteArpMacAddress", Value: "12-34-56-78-9a-bc", Installer: "Azure CNS",
			Means: "the ARP reply for remote addresses", Source: azureCNS},
		{Key: HNS, Name: "PortExclusionChange", Value: "0", Windows: server23H2, Installer: aks, Source: agentBaker23H2},
		{Key: Policy, Name: "66715279", Value: "0", Windows: server23H2, Installer: aks, Since: "2025-10B", Source: december},
		{Key: Policy, Name: "2112481934", Value: "1", Windows: server23H2, Installer: aks, Since: "2025-11B",
			Means: "prevents bugcheck 0x76", Source: bugcheck},
		{Key: HNS, Name: "HNSControlFlag", Value: "80", Windows: server2019, Installer: imageBuilder, Source: imageRoles},
		{Key: wcifs, Name: "WcifsSOPCountDisabled", Value: "0", Windows: server2019, Installer: imageBuilder, Source: imageRoles},
		{Key: Policy, Name: "1114842764", Value: "0", Windows: server2022, Installer: imageBuilder,
			Means: "with it turned on, network tests fail since 2025-04B", Source: image1798},
		{Key: Policy, Name: "520997518", Value: "1", Windows: server2025, Installer: imageBuilder,
			Means: "its unstable network tests pass", Source: image2025},
		{Key: HNS, Name: "DeviceLessNicDisabled", Value: "1", Installer: "WMCO",
			Means: "a static address stays when HNS makes a network", Source: wmco},
		{Key: Policy, Name: "3444861581", Value: "1", Windows: server2022, Installer: "SDN", Source: sdn},
	}
}
