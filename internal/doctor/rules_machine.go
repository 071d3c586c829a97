package doctor

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/preflight"
	"github.com/swdt-dev/swdt/internal/remedy"
	"github.com/swdt-dev/swdt/internal/ui"
)

func machineRules() []Rule {
	machine := []string{"machine"}
	return []Rule{
		asBeforeJoin(Rule{
			ID: "windows-version", Title: "a Windows that Kubernetes supports", Severity: Error, Needs: machine, Link: docsWindows,
			Means: "Kubernetes runs on Windows Server 2019, 2022, 23H2 and 2025; elsewhere kubelet may start and pods do not.",
		}, seenMachine),
		asBeforeJoin(Rule{
			ID: "architecture", Title: "an x86-64 processor", Severity: Error, Needs: machine, Link: docsWindows,
			Means: "kubelet and Windows' base images are published for amd64 only.",
		}, seenMachine),
		asBeforeJoin(Rule{
			ID: "elevated", Title: "swdt's user may look everywhere", Severity: Warning, Needs: machine, Link: docsJoin,
			Means: "A user without full rights sees no services' configuration and no access-restricted files: other rules cannot look, and nothing can be pushed.",
		}, seenMachine),
		asBeforeJoin(Rule{
			ID: "disk-space", Title: "free space on the system drive", Severity: Error, Needs: machine,
			Means: "kubelet removes images and evicts pods when the drive that has images and logs gets full; then pulls fail.",
			Link:  "https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/",
		}, seenMachine),
		asBeforeJoin(Rule{
			ID: "memory", Title: "free memory", Severity: Error, Needs: machine,
			Means: "Windows does not kill processes when memory is short, it pages: every pod of the node gets slow.",
			Link:  "https://kubernetes.io/docs/concepts/configuration/windows-resource-management/",
		}, seenMachine),
		asBeforeJoin(Rule{
			ID: "pending-reboot", Title: "no reboot is pending", Severity: Warning, Needs: machine, Link: docsJoin,
			Means:  "Something that was installed or removed is not so yet; features, drivers and updates may behave as neither before nor after.",
			Remedy: "drain the node and reboot it: `swdt exec -- shutdown /r /t 0`",
		}, seenMachine),
		{
			ID: "containers-feature", Title: "the Windows feature Containers", Severity: Error, Needs: []string{"containersFeature"}, Link: docsJoin,
			Means:  "Without it there is no host compute and no host network service: no container starts.",
			Remedy: "add Containers to spec.setup.features and run `swdt setup --allow-reboot`", look: lookAtContainers,
		},
		{
			ID: "page-file", Title: "a page file", Severity: Warning, Needs: []string{"pageFiles"},
			Means:  "Windows promises memory that programs ask for. Without a page file it refuses as soon as all of the memory is promised, however much of it is free.",
			Remedy: "let Windows manage it: " + remedy.Command("exec", "--", "reg", "add", memoryManagement, "/v", "PagingFiles", "/t", "REG_MULTI_SZ", "/d", `?:\pagefile.sys`, "/f") + ", then reboot", look: lookAtPageFile,
			Link: "https://kubernetes.io/docs/concepts/configuration/windows-resource-management/#resource-management-memory",
		},
		asBeforeJoin(Rule{
			ID: "clock", Title: "the clock agrees with the API server's", Severity: Error, Needs: []string{"machine", "clocks"},
			Means: "Certificates and tokens count as expired or not yet valid, leases as stale, and logs of different machines cannot be compared.",
			Link:  "https://learn.microsoft.com/windows-server/networking/windows-time-service/windows-time-service-tools-and-settings",
		}, func(f *Facts) preflight.Seen {
			c := f.Clocks.Value
			return preflight.Seen{
				Machine: f.Machine.Value.host(),
				Node:    preflight.Clock{Ahead: seconds(c.NodeAhead), GiveOrTake: seconds(c.NodeWithin)},
				Server:  preflight.Clock{Ahead: seconds(c.ServerAhead), GiveOrTake: seconds(c.ServerWithin)},
			}
		}),
		{
			ID: "time-service", Title: "the time service runs", Severity: Warning, Needs: []string{"services"},
			Means:  "Nothing keeps the clock right; a virtual machine that was paused is behind until somebody sets it.",
			Remedy: "`swdt exec -- sc.exe config w32time start= auto`, then `swdt exec -- net start w32time`", look: lookAtTimeService,
			Link: "https://learn.microsoft.com/windows-server/networking/windows-time-service/windows-time-service-tools-and-settings",
		},
		{
			ID: "automatic-updates", Title: "Windows Update asks before it reboots", Severity: Info, Needs: []string{"windowsUpdate"},
			Means:  "Windows installs updates and reboots when it likes, without draining the node.",
			Remedy: remedy.Command("exec", "--", "reg", "add", updatePolicy, "/v", "NoAutoUpdate", "/t", "REG_DWORD", "/d", "1", "/f"), look: lookAtUpdates,
			Link: "https://learn.microsoft.com/windows/deployment/update/waas-wu-settings",
		},
		asBeforeJoin(Rule{
			ID: "defender", Title: "Defender leaves containerd alone", Severity: Warning, Needs: []string{"defender"},
			Means: "Every file of every layer is scanned: pulling images and starting pods takes several times as long.",
			Link:  "https://learn.microsoft.com/virtualization/windowscontainers/manage-docker/anti-virus-optimization-for-windows-containers",
		}, func(f *Facts) preflight.Seen { return preflight.Seen{Defender: *f.Defender.Value} }),
		{
			ID: "proxy", Title: "the proxy is not asked for the cluster's own addresses", Severity: Warning, Needs: []string{"proxy", "kubeconfig"},
			Means:  "kubelet and containerd take the machine's proxy: one that does not know the API server, or services, makes the node lose its cluster.",
			Remedy: "add them to the machine's NO_PROXY (spec.setup.environment), run `swdt setup` and restart kubelet and containerd", look: lookAtProxy,
			Link: "https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/",
		},
	}
}

func lookAtContainers(f *Facts) []Finding {
	switch state := *f.Containers.Value; state {
	case host.FeatureEnabled:
		return nil
	case host.FeatureEnablePending:
		return one(found(string(state), "the feature Containers is enabled only after the next reboot").remedied("reboot the machine: `swdt exec -- shutdown /r /t 0`"))
	default:
		return one(found(string(state), "the feature Containers is not enabled"))
	}
}

func lookAtPageFile(f *Facts) []Finding {
	if len(*f.PageFiles.Value) > 0 {
		return nil
	}
	return one(found(memoryManagement+`\PagingFiles is empty`, "there is no page file"))
}

// lookAtTimeService: without a domain, Windows starts it when it is wanted, which
// may be once a week.
func lookAtTimeService(f *Facts) []Finding {
	service, ok := (*f.Services.Value)["w32time"]
	switch {
	case !ok || service.Running():
		return nil
	case service.StartType == string(host.StartDisabled):
		return one(found("its start type is disabled", "the time service is switched off"))
	}
	return one(found("its start type is "+service.StartType, "the time service does not run at the moment").as(Info))
}

func lookAtUpdates(f *Facts) []Finding {
	if !f.Updates.Value.Automatic {
		return nil
	}
	return one(found(updatePolicy+" does not forbid it", "Windows Update installs, and reboots the node, by itself"))
}

func lookAtProxy(f *Facts) (all []Finding) {
	proxy := f.Proxy.Value
	if proxy.HTTP == "" && proxy.HTTPS == "" {
		return nil
	}
	asked := proxy.HTTPS != "" || strings.HasPrefix(f.Kubeconfig.Value.Server, "http://") && proxy.HTTP != ""
	seen := fmt.Sprintf("HTTP_PROXY=%s HTTPS_PROXY=%s NO_PROXY=%s", proxy.HTTP, proxy.HTTPS, proxy.No)
	if server := f.Kubeconfig.Value.Server; server != "" && asked && !proxy.passes(hostOf(server)) {
		all = append(all, found(seen, "the machine's proxy is asked for the API server %s", hostOf(server)))
	}
	if !proxy.passes("kubernetes.default.svc") {
		all = append(all, found(seen, "the machine's proxy is asked for the cluster's services").
			remedied("add .svc,.cluster.local and the addresses of pods and services to the machine's NO_PROXY (spec.setup.environment), and run `swdt setup`").as(Info))
	}
	return all
}

// passes is whether NO_PROXY has a host, or a domain that it is in.
func (p Proxy) passes(name string) bool {
	for entry := range strings.SplitSeq(folded(p.No), ",") {
		entry = strings.TrimSpace(entry)
		if entry == "*" {
			return true
		}
		entry = strings.TrimPrefix(entry, "*")
		if host, _, err := net.SplitHostPort(entry); err == nil {
			entry = host
		}
		switch {
		case entry == "":
		case entry == name, strings.HasSuffix(name, "."+strings.TrimPrefix(entry, ".")), within(entry, name):
			return true
		}
	}
	return false
}

func eventRules() []Rule {
	events := []string{"events"}
	return []Rule{
		{
			ID: "service-crashes", Title: "services stay up", Severity: Error, Needs: events, Link: docsDebug,
			Means:  "A program of the node ends by itself, again and again; while it is down pods are not looked after.",
			Remedy: "see why: `swdt events --channel services --since 24h`, and `swdt logs list`", look: lookAtCrashes,
		},
		{
			ID: "unexpected-shutdown", Title: "the machine was shut down as it should be", Severity: Warning, Needs: events,
			Means:  "The power went, or Windows crashed: files that were being written may be empty, kubelet's credentials among them.",
			Remedy: "look at what the machine says of it: `swdt events --channel System --id 41`,6008,1001 --since 24h", look: lookAtShutdowns,
			Link: "https://learn.microsoft.com/troubleshoot/windows-client/performance/event-id-41-restart",
		},
		{
			ID: "disk-errors", Title: "the disk can be read", Severity: Error, Needs: events,
			Means:  "The disk fails, or its file system is damaged: layers and binaries may be too.",
			Remedy: "`swdt exec -- chkdsk C: /scan`, and look at the disk, or at the virtual machine's host", look: lookAtDiskErrors,
			Link: "https://learn.microsoft.com/troubleshoot/windows-server/backup-and-storage/troubleshoot-data-corruption-and-disk-errors",
		},
		{
			ID: "memory-exhausted", Title: "memory has sufficed", Severity: Warning, Needs: events,
			Means:  "Windows ran out of memory to promise: programs were refused some, and may have ended.",
			Remedy: "give containers limits, the machine more memory, or a larger page file", look: lookAtExhaustion,
			Link: "https://learn.microsoft.com/troubleshoot/windows-client/performance/introduction-to-the-page-file",
		},
	}
}

// crashLoop is how often a service may end unexpectedly in a day before it counts
// as one that does not stay up.
const crashLoop = 3

func lookAtCrashes(f *Facts) (all []Finding) {
	counts, last := map[string]int{}, map[string]Event{}
	var order []string
	for _, e := range *f.Events.Value {
		if e.ID != 7031 && e.ID != 7034 {
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
		finding := found(seen, "the service %s ended unexpectedly %s in a day", name, times(counts[name]))
		if counts[name] < crashLoop {
			finding = finding.as(Info)
		}
		all = append(all, finding)
	}
	return all
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// lookFor finds events of a number and a provider.
func lookFor(f *Facts, what string, providers []string, ids ...int) []Finding {
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
	return one(found(fmt.Sprintf("%s, event %d of %s: %s", seen.Time.UTC().Format(time.RFC3339), seen.ID, seen.Provider, firstLine(seen.Message)), "%s, %s in a day", what, times(count)))
}

// lookAtShutdowns: the kernel tells of each, and the event log does once more.
func lookAtShutdowns(f *Facts) []Finding {
	const what = "the machine went down without being shut down"
	if all := lookFor(f, what, one("Microsoft-Windows-Kernel-Power"), 41); len(all) > 0 {
		return all
	}
	return lookFor(f, what, one("EventLog"), 6008)
}

func lookAtDiskErrors(f *Facts) []Finding {
	return lookFor(f, "the disk or its file system has errors", []string{"disk", "Ntfs", "Microsoft-Windows-Ntfs"}, 7, 51, 55, 98)
}

func lookAtExhaustion(f *Facts) []Finding {
	return lookFor(f, "Windows ran out of virtual memory", []string{"Microsoft-Windows-Resource-Exhaustion-Detector"}, 2004)
}

func size(bytes uint64) string { return ui.Size(int64(bytes)) }
