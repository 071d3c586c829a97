package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/commandline"
	"github.com/swdt-dev/swdt/internal/kubeletargs"
	"github.com/swdt-dev/swdt/internal/ui"
)

func kubeletRules() []Rule {
	return []Rule{
		{
			ID: "kubelet-flags", Title: "this kubelet knows its flags", Severity: Error, Needs: []string{"programs", "kubeletFlags"}, Link: docsKubelet,
			Means:  "kubelet ends at once with \"unknown flag\": flags are removed from release to release.",
			Remedy: "take the flag out of the service's command line: `swdt join` does, or sc.exe config kubelet binPath= …", look: lookAtFlags,
		},
		{
			ID: "kubelet-config", Title: "kubelet's configuration can be read", Severity: Error, Needs: []string{"kubeletConfig"}, Link: docsKubelet,
			Means:  "kubelet ends at once when the file that --config names is none of its own.",
			Remedy: "let kubeadm write it again: `swdt join`", look: lookAtKubeletConfig,
		},
		{
			ID: "kubelet-cgroups", Title: "kubelet does not look for cgroups", Severity: Error, Needs: []string{"kubeletFlags", "kubeletConfig"}, Link: docsKubelet,
			Means:  "Windows has no cgroups: a kubelet that is told to enforce by them does not begin, or warns of it at every turn.",
			Remedy: "start kubelet with --cgroups-per-qos=false --enforce-node-allocatable=\"\"", look: lookAtCgroups,
		},
		{
			ID: "kubelet-endpoint", Title: "kubelet and containerd mean the same pipe", Severity: Error, Needs: []string{"kubeletFlags", "containerdConfig"}, Link: docsCRI,
			Means:  "kubelet waits for a runtime where none is, and ends; its own default is a socket of Linux, on Windows too.",
			Remedy: "start kubelet with --container-runtime-endpoint=" + runtimePipe, look: lookAtEndpoint,
		},
		{
			ID: "kubelet-health", Title: "kubelet is well", Severity: Error, Needs: []string{"kubeletHealth"}, Link: docsKubelet,
			Means:  "kubelet runs but does not get on: its loop hangs, mostly on a runtime that does not answer.",
			Remedy: "see at what: `swdt logs kubelet --tail 100`; `swdt cri status`", look: lookAtHealth,
		},
		{
			ID: "kubelet-log", Title: "what kubelet logs is kept", Severity: Info, Needs: []string{"services", "programs", "kubeletFlags"}, Link: docsJoin,
			Means:  "A kubelet from 1.26 on that Windows runs as a service writes its log nowhere: when it ends, nobody knows why.",
			Remedy: "let kube-log-runner.exe run it, as `swdt join` does", look: lookAtKubeletLog,
		},
		{
			ID: "log-size", Title: "no log grows without end", Severity: Warning, Needs: []string{"logs"},
			Means:  "kubelet rotates what containers log, and nobody what kubelet, containerd and kube-proxy do: they fill the system drive.",
			Remedy: "stop the service, move the file away, start it again; a lower --v writes less", look: lookAtLogSize,
			Link: "https://kubernetes.io/docs/concepts/cluster-administration/logging/",
		},
	}
}

func lookAtFlags(f *Facts) (all []Finding) {
	version := (*f.Programs.Value)["kubelet"].Version
	if version == "" {
		return nil
	}
	given := slices.Sorted(maps.Keys(*f.KubeletFlags.Value))
	for _, r := range kubeletargs.Refused(version, given) {
		all = append(all, found("kubelet "+version, "kubelet's command line has --%s, %s", r.Flag, r.Why))
	}
	return all
}

func lookAtKubeletConfig(f *Facts) []Finding {
	if problem := f.Kubelet.Value.Problem; problem != "" {
		return one(found(problem, "kubelet's configuration cannot be read"))
	}
	if kind := f.Kubelet.Value.Kind; kind != "KubeletConfiguration" {
		return one(found("its kind is "+cmp.Or(kind, "not said"), "%s is no KubeletConfiguration", f.Kubelet.Value.Path))
	}
	return nil
}

func lookAtCgroups(f *Facts) (all []Finding) {
	flags, config := *f.KubeletFlags.Value, f.Kubelet.Value
	if config.Problem != "" {
		return nil // of which another rule tells
	}
	perQOS, told := flags["cgroups-per-qos"]
	if !told {
		perQOS = fmt.Sprint(config.CgroupsPerQOS == nil || *config.CgroupsPerQOS) // true by default
	}
	if perQOS != "false" {
		all = append(all, found("neither a flag nor the configuration turns it off", "kubelet is to make cgroups for classes of pods (cgroupsPerQOS)").as(Warning))
	}
	allocatable, told := flags["enforce-node-allocatable"]
	if !told && config.EnforceNodeAllocatable != nil {
		allocatable, told = strings.Join(*config.EnforceNodeAllocatable, ","), true
	}
	if told && strings.Contains(allocatable, "pods") && perQOS == "false" {
		all = append(all, found("enforceNodeAllocatable is "+allocatable, "kubelet is to enforce by cgroups (enforceNodeAllocatable) that it does not make"))
	}
	return all
}

func lookAtEndpoint(f *Facts) []Finding {
	endpoint, pipe := f.endpoint(), f.Containerd.Value.Pipe
	unread := f.Kubelet.Value == nil && f.flag("config") != "" || f.Kubelet.Value != nil && f.Kubelet.Value.Problem != ""
	switch {
	case endpoint == "" && unread:
		return nil // it may stand there
	case endpoint == "":
		return one(found("neither a flag nor kubelet's configuration names it", "kubelet is not told where its container runtime is"))
	case pipe != "" && !sameEndpoint(endpoint, pipe):
		return one(found("kubelet: "+endpoint+", containerd: "+pipe, "kubelet looks for its container runtime where containerd is not"))
	}
	return nil
}

func lookAtHealth(f *Facts) []Finding {
	h := f.Health.Value
	switch {
	case h.Error != "":
		return one(found(h.URL+": "+h.Error, "kubelet does not answer whether it is well"))
	case h.Status != http.StatusOK:
		return one(found(fmt.Sprintf("%s: %d %s", h.URL, h.Status, firstLine(h.Body)), "kubelet says that it is not well"))
	}
	return nil
}

// noOwnLog is the first minor version of kubelet that has no --log-file.
const noOwnLog = 26

func lookAtKubeletLog(f *Facts) []Finding {
	line := f.service("kubelet").CommandLine
	minor, ok := minorOf((*f.Programs.Value)["kubelet"].Version)
	runner := folded(baseOf(strings.Trim(firstWord(line), `"`)))
	if !ok || minor < noOwnLog || runner != "kubelet.exe" {
		return nil
	}
	return one(found(line, "nobody keeps what kubelet logs"))
}

func firstWord(line string) string {
	if words := commandline.Split(line); len(words) > 0 {
		return words[0]
	}
	return ""
}

// largeLog is a log that somebody should have looked after, bytes.
const largeLog = 1 << 30

func lookAtLogSize(f *Facts) (all []Finding) {
	for _, log := range *f.Logs.Value {
		if log.Bytes >= largeLog {
			all = append(all, found(log.Path, "a log has grown to %s", ui.Size(log.Bytes)))
		}
	}
	return all
}
