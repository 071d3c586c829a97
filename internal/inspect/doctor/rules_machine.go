package doctor

import (
	"cmp"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/join/combination"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func machineRules() []Rule {
	machine := []string{"machine"}
	return []Rule{
		fromPreflight(Rule{
			ID: "windows-version", Title: "Kubernetes supports this Windows", Severity: finding.Error, Needs: machine,
			Link: docsWindows,
			Means: "Kubernetes supports Windows Server 2019, 2022, 23H2 and 2025; on others kubelet may start, but " +
				"pods do not.",
		}, gatheredMachine),
		{
			ID: combination.Check, Title: "Windows works together with the programs of the node",
			Severity: finding.Warning, Needs: machine, Link: docsJoin,
			Means: "This Windows is known not to work with the pod network, containerd, its snapshotter or kube-proxy in the " +
				"version that it has, or a project does not support it. The finding has the reports.",
			Remedy: "update Windows or the program, or use another Windows", look: lookAtCombinations,
		},
		fromPreflight(Rule{
			ID: "architecture", Title: "the processor is x86-64", Severity: finding.Error, Needs: machine,
			Link:  docsWindows,
			Means: "kubelet and Windows' base images are published for amd64 only.",
		}, gatheredMachine),
		fromPreflight(Rule{
			ID: "elevated", Title: "swdt's user has full administrator rights", Severity: finding.Warning,
			Needs: machine, Link: docsJoin,
			Means: "Without full rights swdt cannot read the configuration of services or protected files: other " +
				"rules are skipped, and nothing can be pushed.",
		}, gatheredMachine),
		fromPreflight(Rule{
			ID: "disk-space", Title: "the system drive has free space", Severity: finding.Error, Needs: machine,
			Means: "kubelet removes images and evicts pods when the drive with images and logs fills up; then pulls fail.",
			Link:  "https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/",
		}, gatheredMachine),
		fromPreflight(Rule{
			ID: "memory", Title: "the machine has free memory", Severity: finding.Error, Needs: machine,
			Means: "Windows does not kill processes when memory is short; it pages, and every pod of the node " +
				"becomes slow.",
			Link: "https://kubernetes.io/docs/concepts/configuration/windows-resource-management/",
		}, gatheredMachine),
		fromPreflight(Rule{
			ID: "pending-reboot", Title: "no reboot is pending", Severity: finding.Warning, Needs: machine,
			Link: docsJoin,
			Means: "An installation or removal takes effect only after the reboot; until then features, drivers and " +
				"updates may be in a mixed state.",
			Remedy: "drain the node and reboot it: `swdt exec -- shutdown /r /t 0`",
		}, gatheredMachine),
		{
			ID: "containers-feature", Title: "the Windows feature Containers is enabled", Severity: finding.Error,
			Needs: []string{"containersFeature"}, Link: docsJoin,
			Means:  "Without it the host compute service and the host network service are missing: no container starts.",
			Remedy: "add Containers to spec.setup.features and run `swdt setup --allow-reboot`", look: lookAtContainers,
		},
		{
			ID: "page-file", Title: "Windows has a page file", Severity: finding.Warning, Needs: []string{"pageFiles"},
			Means: "Windows commits the memory that programs request. Without a page file, requests fail as soon as " +
				"all memory is committed, however much of it is free.",
			Remedy: "let Windows manage the page file: " + remedy.Command("exec", "--", "reg", "add", memoryManagement,
				"/v", "PagingFiles", "/t", "REG_MULTI_SZ", "/d", `?:\pagefile.sys`, "/f") + ", then reboot",
			look: lookAtPageFile,
			Link: "https://kubernetes.io/docs/concepts/configuration/windows-resource-management/#resource-management-memory",
		},
		fromPreflight(Rule{
			ID: "clock", Title: "the clock agrees with the API server's", Severity: finding.Error,
			Needs: []string{"machine", "clocks"},
			Means: "Certificates and tokens are rejected as expired or not yet valid, leases seem stale, and logs of " +
				"different machines cannot be compared.",
			Link: "https://learn.microsoft.com/windows-server/networking/windows-time-service/" +
				"windows-time-service-tools-and-settings",
		}, func(f *Facts) preflight.Gathered {
			c := f.Clocks.Value
			return preflight.Gathered{
				Machine: f.Machine.Value.platform(),
				Node:    preflight.Clock{Ahead: seconds(c.NodeAhead), GiveOrTake: seconds(c.NodeWithin)},
				Server:  preflight.Clock{Ahead: seconds(c.ServerAhead), GiveOrTake: seconds(c.ServerWithin)},
			}
		}),
		{
			ID: "time-service", Title: "the time service runs", Severity: finding.Warning, Needs: []string{"services"},
			Means: "Nothing corrects the clock; after a pause, a virtual machine's clock stays behind until it is " +
				"set by hand.",
			Remedy: "`swdt exec -- sc.exe config w32time start= auto`, then `swdt exec -- net start w32time`",
			look:   lookAtTimeService,
			Link: "https://learn.microsoft.com/windows-server/networking/windows-time-service/" +
				"windows-time-service-tools-and-settings",
		},
		{
			ID: "automatic-updates", Title: "Windows Update does not reboot on its own", Severity: finding.Info,
			Needs: []string{"windowsUpdate"},
			Means: "Windows installs updates and reboots at a time of its choice, without draining the node.",
			Remedy: remedy.Command("exec", "--", "reg", "add", updatePolicy, "/v", "NoAutoUpdate", "/t", "REG_DWORD",
				"/d", "1", "/f"), look: lookAtUpdates,
			Link: "https://learn.microsoft.com/windows/deployment/update/waas-wu-settings",
		},
		fromPreflight(Rule{
			ID: "defender", Title: "Defender excludes containerd", Severity: finding.Warning,
			Needs: []string{"defender"},
			Means: "Defender scans every file of every layer: pulling images and starting pods takes several times " +
				"as long.",
			Link: "https://learn.microsoft.com/virtualization/windowscontainers/manage-docker/" +
				"anti-virus-optimization-for-windows-containers",
		}, func(f *Facts) preflight.Gathered { return preflight.Gathered{Defender: *f.Defender.Value} }),
	}
}

// lookAtCombinations uses the programs and the pod network if they are known.
func lookAtCombinations(f *Facts) []finding.Finding {
	m := f.Machine.Value
	s := combination.On(m.Build, m.Product)
	if f.Programs.Value != nil {
		programs := *f.Programs.Value
		s.Containerd = programs["containerd"].Version
		s.Kubernetes = cmp.Or(programs["kube-proxy"].Version, programs["kubelet"].Version)
	}
	if f.Containerd.Value != nil {
		s.Snapshotter = f.Containerd.Value.Snapshotter
	}
	if f.Network.Value != nil {
		s = s.In(combination.NetworkOf(*f.Network.Value))
	}
	return combination.Find(s)
}

func lookAtContainers(f *Facts) []finding.Finding {
	switch state := *f.Containers.Value; state {
	case platform.FeatureEnabled:
		return nil
	case platform.FeatureEnablePending:
		return one(finding.New(string(state),
			"the feature Containers takes effect only after the next reboot").Remedied("reboot the machine: " +
			"`swdt exec -- shutdown /r /t 0`"))
	default:
		return one(finding.New(string(state), "the feature Containers is not enabled"))
	}
}

func lookAtPageFile(f *Facts) []finding.Finding {
	if len(*f.PageFiles.Value) > 0 {
		return nil
	}
	return one(finding.New(memoryManagement+`\PagingFiles is empty`, "there is no page file"))
}

// lookAtTimeService reports a time service that is stopped but not disabled only as information:
// without a domain, Windows starts the service only when it is needed, perhaps once a week.
func lookAtTimeService(f *Facts) []finding.Finding {
	service, ok := (*f.Services.Value)["w32time"]
	switch {
	case !ok || service.Running():
		return nil
	case service.StartType == string(platform.StartDisabled):
		return one(finding.New("its start type is disabled", "the time service is disabled"))
	}
	return one(finding.New("its start type is "+service.StartType,
		"the time service is not running at the moment").As(finding.Info))
}

func lookAtUpdates(f *Facts) []finding.Finding {
	if !f.Updates.Value.Automatic {
		return nil
	}
	return one(finding.New(updatePolicy+" does not forbid it",
		"Windows Update installs updates and reboots the node by itself"))
}

func eventRules() []Rule {
	events := []string{"events"}
	return []Rule{
		{
			ID: "service-crashes", Title: "services do not crash", Severity: finding.Error, Needs: events,
			Link:   docsDebug,
			Means:  "A program of the node exits unexpectedly and repeatedly; while it is down, pods are not managed.",
			Remedy: "find the cause: `swdt events --channel services --since 24h`, and `swdt logs list`",
			look:   lookAtCrashes,
		},
		{
			ID: "unexpected-shutdown", Title: "the machine was shut down cleanly", Severity: finding.Warning,
			Needs: events,
			Means: "The power failed, or Windows crashed: files that were being written may be empty, including " +
				"kubelet's credentials.",
			Remedy: "read the machine's events: `swdt events --channel System --id 41,6008,1001 --since 24h`",
			look:   lookAtShutdowns,
			Link:   "https://learn.microsoft.com/troubleshoot/windows-client/performance/event-id-41-restart",
		},
		{
			ID: "disk-errors", Title: "the disk has no errors", Severity: finding.Error, Needs: events,
			Means:  "The disk is failing, or its file system is damaged; image layers and binaries may be damaged too.",
			Remedy: "`swdt exec -- chkdsk C: /scan`, and check the disk, or the host of the virtual machine",
			look:   lookAtDiskErrors,
			Link: "https://learn.microsoft.com/troubleshoot/windows-server/backup-and-storage/" +
				"troubleshoot-data-corruption-and-disk-errors",
		},
		{
			ID: "memory-exhausted", Title: "Windows did not run out of memory", Severity: finding.Warning,
			Needs:  events,
			Means:  "Windows could commit no more memory: requests of programs failed, and programs may have exited.",
			Remedy: "set memory limits for containers, or give the machine more memory or a larger page file",
			look:   lookAtExhaustion,
			Link:   "https://learn.microsoft.com/troubleshoot/windows-client/performance/introduction-to-the-page-file",
		},
	}
}

// crashLoop is the number of unexpected ends in a day from which a service counts as
// crashing repeatedly.
const crashLoop = 3

func lookAtCrashes(f *Facts) (all []finding.Finding) {
	counts, last := map[string]int{}, map[string]Event{}
	var order []string
	for _, e := range *f.Events.Value {
		ours := e.Subject == layout.SelftestService || e.Subject == layout.SelftestDisplayName
		if e.ID != 7031 && e.ID != 7034 || ours {
			continue
		}
		if counts[e.Subject]++; counts[e.Subject] == 1 {
			order = append(order, e.Subject)
		}
		if e.Time.After(last[e.Subject].Time) {
			last[e.Subject] = e
		}
	}
	for _, name := range order {
		seen := "last " + last[name].Time.UTC().Format(time.RFC3339) + ": " + firstLine(last[name].Message)
		crash := finding.New(seen, "the service %s ended unexpectedly %s in a day", name, times(counts[name]))
		if counts[name] < crashLoop {
			crash = crash.As(finding.Info)
		}
		all = append(all, crash)
	}
	return all
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// lookFor returns one finding for all events that have one of the ids and one of the
// providers.
func lookFor(f *Facts, what string, providers []string, ids ...int) []finding.Finding {
	count, seen := 0, Event{}
	for _, e := range *f.Events.Value {
		for _, id := range ids {
			for _, provider := range providers {
				if e.ID == id && e.Provider == provider {
					count, seen = count+1, e
				}
			}
		}
	}
	if count == 0 {
		return nil
	}
	return one(finding.New(fmt.Sprintf("%s, event %d of %s: %s", seen.Time.UTC().Format(time.RFC3339), seen.ID,
		seen.Provider, firstLine(seen.Message)), "%s, %s in a day", what, times(count)))
}

// lookAtShutdowns uses the events of one source only, since the kernel and the event log each
// report the same shutdown.
func lookAtShutdowns(f *Facts) []finding.Finding {
	const what = "the machine went down without a shutdown"
	if all := lookFor(f, what, one("Microsoft-Windows-Kernel-Power"), 41); len(all) > 0 {
		return all
	}
	return lookFor(f, what, one("EventLog"), 6008)
}

func lookAtDiskErrors(f *Facts) []finding.Finding {
	return lookFor(f, "the disk or its file system has errors", []string{"disk", "Ntfs", "Microsoft-Windows-Ntfs"},
		7, 51, 55, 98)
}

func lookAtExhaustion(f *Facts) []finding.Finding {
	return lookFor(f, "Windows ran out of virtual memory", []string{"Microsoft-Windows-Resource-Exhaustion-Detector"},
		2004)
}

func size(bytes uint64) string { return ui.Size(int64(bytes)) }
