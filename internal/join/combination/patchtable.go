package combination

import (
	"github.com/swdt-dev/swdt/internal/join/switches"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// More builds of Windows. A client's updates have revisions of their own.
const (
	server2019 = 17763
	server23H2 = 25398
	client25H2 = 26200
)

// Revisions of Windows Server, with the update that has them.
const (
	april2020   = 1192 // of 2019: KB4550969
	may2020     = 1217 // of 2019: KB4551853
	august2020  = 1432 // of 2019: KB4571748
	october2020 = 1518 // of 2019: KB4577668
	march2021   = 1817 // of 2019: KB5000822
	autumn2021  = 2210 // of 2019: KB5005625
	november22  = 3650 // of 2019: KB5019966
	october2022 = 1194 // of 2022: KB5018485
	april2025   = 3453 // of 2022: KB5055526
	december25  = 4529 // of 2022: KB5071547
)

// Patches returns the updates that are known to break nodes, apart from those in Table, which a pod network, a snapshotter or
// the version of a program triggers. To add one, add a row with the sources that report it, and a case to TestEachPatch.
func Patches() []Patch { return append(of2022(), of2019()...) }

func override(id string, has, protects string) PatchSwitch {
	return PatchSwitch{Key: switches.Policy, Name: id, Has: is(has), Protects: is(protects)}
}

func of2022() []Patch {
	const day = "2026-11-30"
	return []Patch{
		{
			ID: "vfp-lock", Severity: finding.Info, Windows: []Windows{{Build: server2022, From: april2025}},
			Switch: override("1114842764", "1", "0"),
			What: "Kubernetes' network tests fail since the update of April 2025 with the override 1114842764 turned on. " +
				"Images of CAPZ turn it off, AKS turns it on",
			Remedy:  "if connections of pods fail, turn it off: set the value 1114842764 to 0, and restart Windows",
			Sources: []string{issues + "kubernetes-sigs/image-builder/pull/1798", windowsJuly}, Seen: day,
		},
		{
			ID: "december-2025", Severity: finding.Warning, Windows: []Windows{{Build: server2022, From: december25}},
			Switch:  override("140377743", "1", "0"),
			What:    "AKS found regressions in the update of December 2025, which the override 140377743 turns on",
			Remedy:  "set the value 140377743 to 0 and restart Windows, as AKS does",
			Sources: []string{issues + "Azure/AgentBaker/pull/7528"}, Seen: day,
		},
		{
			ID: "december-2025-23h2", Severity: finding.Warning, Windows: []Windows{{Build: server23H2}},
			Switch:  override("66715279", "1", "0"),
			What:    "AKS found regressions in the update of December 2025, which the override 66715279 turns on",
			Remedy:  "set the value 66715279 to 0 and restart Windows, or replace Server 23H2, whose support has ended",
			Sources: []string{issues + "Azure/AgentBaker/pull/7528"}, Seen: day,
		},
		{
			ID: "bugcheck-76", Severity: finding.Warning, Windows: []Windows{{Build: server23H2}},
			Switch:  override("2112481934", "0", "1"),
			What:    "Windows stops with bugcheck 0x76 unless the override 2112481934 is on",
			Remedy:  "set the value 2112481934 to 1 with the update of November 2025 or later, and restart Windows",
			Sources: []string{issues + "Azure/AgentBaker/pull/7361"}, Seen: day,
		},
		{
			ID: "bluescreen-2022", Severity: finding.Warning,
			Windows: []Windows{{Build: server2022, From: 1726, Before: 1727}, {Build: server2022, From: 2461, Before: 2462}},
			Images:  []string{"20348.2322", "20348.2340"},
			What:    "Windows crashed at the start of containers of images of this revision",
			Remedy:  "update the node and the image to a later revision; the report is open",
			Sources: []string{issues + "microsoft/Windows-Containers/issues/502"}, Seen: day,
		},
		{
			ID: "layer-2025", Severity: finding.Info, Windows: []Windows{{Build: server2025, From: 7840, Before: 7841}},
			Images:  []string{"26100.7462"},
			What:    "one report says that ActivateLayer fails with 0x20 for images of this revision on this host",
			Remedy:  "use images of the host's revision",
			Sources: []string{issues + "microsoft/hcsshim/issues/2553"}, Seen: day,
		},
		{
			ID: "tests-2025", Severity: finding.Info, Windows: []Windows{{Build: server2025}},
			Switch:  override("520997518", "0", "1"),
			What:    "Kubernetes' network tests are unstable on Server 2025 unless the override 520997518 is on",
			Remedy:  "if connections of pods fail, set the value 520997518 to 1 and restart Windows, as images of CAPZ do",
			Sources: []string{issues + "kubernetes-sigs/image-builder/commit/0ed6c7c5b"}, Seen: day,
		},
		{
			ID: "layer-25h2", Severity: finding.Warning, Windows: []Windows{{Build: client25H2, Client: true}},
			Images:  []string{"26100."},
			What:    "PrepareLayer fails with 0xc0370112 for images of Server 2025 on Windows 11 25H2",
			Remedy:  "use images of Server 2022 (ltsc2022); the report is open",
			Sources: []string{issues + "microsoft/hcsshim/issues/2566"}, Seen: day,
		},
		{
			ID: "hns-crash-2022", Severity: finding.Warning, Windows: []Windows{{Build: server2022, Before: october2022}},
			What:    "the Host Network Service crashes, and the load balancers of Services are gone",
			Remedy:  "install a cumulative update of October 2022 or later (build 20348.1194, KB5018485)",
			Sources: []string{issues + "microsoft/Windows-Containers/issues/278"}, Seen: day,
		},
	}
}

func of2019() []Patch {
	const day = "2026-11-30"
	before := func(revision int) []Windows { return []Windows{{Build: server2019, Before: revision}} }
	return []Patch{
		{
			ID: "hns-crash-2019", Severity: finding.Warning, Windows: before(november22),
			What:    "the Host Network Service crashes, and the load balancers of Services are gone",
			Remedy:  "install a cumulative update of November 2022 or later (build 17763.3650), and set the bit 0x10 of HNSControlFlag",
			Sources: []string{issues + "microsoft/Windows-Containers/issues/278"}, Seen: day,
		},
		{
			ID: "hns-crash-2019-switch", Severity: finding.Warning, Windows: []Windows{{Build: server2019, From: november22}},
			Switch: PatchSwitch{Key: switches.HNS, Name: "HNSControlFlag", Has: no, Protects: hasBit(0x10)},
			What:   "the Host Network Service crashes, and the load balancers of Services are gone",
			Remedy: "set the bit 0x10 of HNSControlFlag in " + switches.HNS + ", as AKS did, and restart the service hns: kube-proxy " +
				"makes the load balancers again",
			Sources: []string{issues + "microsoft/Windows-Containers/issues/278"}, Seen: day,
		},
		{
			ID: "gmsa-2019", Severity: finding.Info, Windows: before(march2021),
			What:    "pods of containerd cannot use group managed service accounts",
			Remedy:  "install a cumulative update of March 2021 or later (build 17763.1817, KB5000822)",
			Sources: []string{issues + "kubernetes/website/pull/31412"}, Seen: day,
		},
		{
			ID: "ingress-2019", Severity: finding.Warning,
			Windows: []Windows{{Build: server2019, From: april2020, Before: may2020 + 1}},
			What:    "published ports of containers do not answer",
			Remedy:  "install a later cumulative update",
			Sources: []string{issues + "moby/moby/issues/40998"}, Seen: day,
		},
		{
			ID: "decap-2019", Severity: finding.Warning,
			Windows: []Windows{{Build: server2019, From: august2020, Before: october2020}},
			What:    "Services do not answer after a restart of the Host Network Service",
			Remedy:  "install a cumulative update of October 2020 or later (build 17763.1518, KB4577668)",
			Sources: []string{issues + "microsoft/Windows-Containers/issues/61"}, Seen: day,
		},
		{
			ID: "afunix-2019", Severity: finding.Warning, Windows: before(autumn2021),
			What:    "Windows stops with bugcheck 139 in afunix.sys",
			Remedy:  "install a cumulative update of 21 September 2021 or later (build 17763.2210, KB5005625)",
			Sources: []string{issues + "microsoft/Windows-Containers/issues/129"}, Seen: day,
		},
		{
			ID: "wcifs-25h2", Severity: finding.Info,
			Unsure:  []Windows{{Build: client25H2, Client: true}},
			What:    "wcifs loses kernel memory on Windows 11 25H2: seen on 26200.9168",
			Remedy:  "compare the pool tags WCsc and WCfc over hours; the report is open",
			Sources: []string{issues + "microsoft/Windows-Containers/issues/646"}, Seen: day,
		},
	}
}
