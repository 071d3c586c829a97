package doctor

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func kubeletRules() []Rule {
	return []Rule{
		{
			ID: "kubelet-flags", Title: "kubelet supports its flags", Severity: finding.Error,
			Needs: []string{"programs", "kubeletFlags"}, Link: docsKubelet,
			Means: "kubelet exits at once with \"unknown flag\": newer releases lack some flags.",
			Remedy: "remove the flag from the service's command line: run `swdt join`, or sc.exe config kubelet " +
				"binPath= …", look: lookAtFlags,
		},
		{
			ID: "kubeadm-flags", Title: "kubelet has the flags of kubeadm-flags.env", Severity: finding.Warning,
			Needs: []string{"programs", "kubeletFlags", "kubeadmFlags"}, Link: docsKubelet,
			Means: "kubeadm writes kubelet's flags into kubeadm-flags.env, which systemd reads on Linux. A kubelet that " +
				"is a native service of Windows does not read the file, so these flags have no effect.",
			Remedy: "`swdt join` passes the flags of the file to the service; or add them with sc.exe config kubelet " +
				"binPath= …", look: lookAtKubeadmFlags,
		},
		{
			ID: "kubelet-config", Title: "kubelet's configuration can be read", Severity: finding.Error,
			Needs: []string{"kubeletConfig"}, Link: docsKubelet,
			Means:  "kubelet exits at once if the file that --config names is not a valid configuration of kubelet.",
			Remedy: "have kubeadm write it again: `swdt join`", look: lookAtKubeletConfig,
		},
		{
			ID: "kubelet-cgroups", Title: "kubelet does not use cgroups", Severity: finding.Error,
			Needs: []string{"kubeletFlags", "kubeletConfig"}, Link: docsKubelet,
			Means: "Windows has no cgroups: if kubelet is configured to enforce limits with them, it does not " +
				"start, or logs warnings constantly.",
			Remedy: "start kubelet with --cgroups-per-qos=false --enforce-node-allocatable=\"\"", look: lookAtCgroups,
		},
		{
			ID: "kubelet-endpoint", Title: "kubelet and containerd use the same pipe", Severity: finding.Error,
			Needs: []string{"kubeletFlags", "containerdConfig"}, Link: docsCRI,
			Means: "kubelet waits for a runtime on the wrong pipe, and exits; its default is a Linux socket, on " +
				"Windows too.",
			Remedy: "start kubelet with --container-runtime-endpoint=" + runtimePipe, look: lookAtEndpoint,
		},
		{
			ID: "kubelet-health", Title: "kubelet is healthy", Severity: finding.Error,
			Needs: []string{"kubeletHealth"}, Link: docsKubelet,
			Means:  "kubelet runs but makes no progress: its loop hangs, usually on a runtime that does not answer.",
			Remedy: "find where kubelet hangs: `swdt logs kubelet --tail 100`; `swdt cri status`", look: lookAtHealth,
		},
		{
			ID: "kubelet-log", Title: "kubelet's log is stored", Severity: finding.Info,
			Needs: []string{"services", "programs", "kubeletFlags"}, Link: docsJoin,
			Means: "From 1.26 on, a kubelet that Windows runs as a service writes its log nowhere: when it exits, " +
				"the reason is lost.",
			Remedy: "run kubelet with kube-log-runner.exe, as `swdt join` does", look: lookAtKubeletLog,
		},
		{
			ID: "log-size", Title: "no log grows without limit", Severity: finding.Warning, Needs: []string{"logs"},
			Means: "kubelet rotates the logs of containers, but nothing rotates the logs of kubelet, containerd " +
				"and kube-proxy: these fill the system drive.",
			Remedy: "stop the service, move the file, and start the service again; a lower --v writes less",
			look:   lookAtLogSize,
			Link:   "https://kubernetes.io/docs/concepts/cluster-administration/logging/",
		},
	}
}

func lookAtFlags(f *Facts) (all []finding.Finding) {
	version := (*f.Programs.Value)["kubelet"].Version
	if version == "" {
		return nil
	}
	given := slices.Sorted(maps.Keys(*f.KubeletFlags.Value))
	for _, r := range kubeletargs.Refused(version, given) {
		all = append(all, finding.New("kubelet "+version, "kubelet's command line has --%s, %s", r.Flag, r.Why))
	}
	return all
}

func lookAtKubeadmFlags(f *Facts) (all []finding.Finding) {
	file, flags := f.KubeadmFlags.Value, *f.KubeletFlags.Value
	if _, native := flags["windows-service"]; !native {
		return nil // a script that starts kubelet may read the file
	}
	if file.Problem != "" {
		return one(finding.New(file.Problem, "the file with kubelet's flags cannot be read"))
	}
	names := slices.Sorted(maps.Keys(file.Flags))
	refused := kubeletargs.Refused((*f.Programs.Value)["kubelet"].Version, names)
	var missing, different []string
	for _, name := range names {
		is, given := flags[name]
		switch {
		case slices.ContainsFunc(refused, func(r kubeletargs.Refusal) bool { return r.Flag == name }):
		case !given:
			missing = append(missing, "--"+name)
		case !hasValue(is, file.Flags[name]):
			different = append(different, "--"+name)
		}
	}
	if len(missing) > 0 {
		all = append(all, finding.New(file.Path+" has "+strings.Join(missing, ", "),
			"kubelet's command line lacks flags that kubeadm has set"))
	}
	if len(different) > 0 {
		all = append(all, finding.New(file.Path+" has other values of "+strings.Join(different, ", "),
			"kubelet's command line has other values than kubeadm has set").As(finding.Info))
	}
	return all
}

// hasValue reports whether the value of a flag is the wanted one, or a list with all of its elements.
func hasValue(is, wanted string) bool {
	if is == "" && wanted == "true" || sameEndpoint(is, wanted) {
		return true
	}
	elements := strings.Split(is, ",")
	for element := range strings.SplitSeq(wanted, ",") {
		if !slices.Contains(elements, element) {
			return false
		}
	}
	return true
}

func lookAtKubeletConfig(f *Facts) (all []finding.Finding) {
	if problem := f.Kubelet.Value.Problem; problem != "" {
		all = append(all, finding.New(problem, "kubelet does not start with its configuration"))
	}
	for _, ignored := range f.Kubelet.Value.Ignored {
		all = append(all, finding.New(ignored.What, "kubelet ignores a field of its configuration").
			As(finding.Warning).Remedied("%s", ignored.Remedy))
	}
	return all
}

func lookAtCgroups(f *Facts) (all []finding.Finding) {
	flags, config := *f.KubeletFlags.Value, f.Kubelet.Value
	if config.Problem != "" {
		return nil // another rule reports an unreadable configuration
	}
	perQOS, given := flags["cgroups-per-qos"]
	if !given {
		perQOS = fmt.Sprint(config.CgroupsPerQOS == nil || *config.CgroupsPerQOS) // true by default
	}
	if perQOS != "false" {
		all = append(all, finding.New("neither a flag nor the configuration disables them",
			"kubelet is configured to create cgroups for classes of pods (cgroupsPerQOS)").As(finding.Warning))
	}
	allocatable, given := flags["enforce-node-allocatable"]
	if !given && config.EnforceNodeAllocatable != nil {
		allocatable, given = strings.Join(*config.EnforceNodeAllocatable, ","), true
	}
	if given && strings.Contains(allocatable, "pods") && perQOS == "false" {
		all = append(all, finding.New("enforceNodeAllocatable is "+allocatable,
			"kubelet is configured to enforce limits (enforceNodeAllocatable) with cgroups that it does not create"))
	}
	return all
}

func lookAtEndpoint(f *Facts) []finding.Finding {
	endpoint, pipe := f.endpoint(), f.Containerd.Value.Pipe
	unread := f.Kubelet.Value == nil && f.flag("config") != "" || f.Kubelet.Value != nil &&
		f.Kubelet.Value.Problem != ""
	switch {
	case endpoint == "" && unread:
		return nil // the configuration, which could not be read, may set the endpoint
	case endpoint == "":
		return one(finding.New("neither a flag nor kubelet's configuration sets it",
			"kubelet has no endpoint of its container runtime"))
	case pipe != "" && !sameEndpoint(endpoint, pipe):
		return one(finding.New("kubelet: "+endpoint+", containerd: "+pipe,
			"kubelet connects to another pipe than containerd's"))
	}
	return nil
}

func lookAtHealth(f *Facts) []finding.Finding {
	h := f.Health.Value
	switch {
	case h.Error != "":
		return one(finding.New(h.URL+": "+h.Error, "kubelet does not answer its health check"))
	case h.Status != http.StatusOK:
		return one(finding.New(fmt.Sprintf("%s: %d %s", h.URL, h.Status, firstLine(h.Body)),
			"kubelet reports that it is not healthy"))
	}
	return nil
}

// noOwnLog is the first minor version of kubelet that has no --log-file.
const noOwnLog = 26

func lookAtKubeletLog(f *Facts) []finding.Finding {
	line := f.service("kubelet").CommandLine
	minor, ok := minorOf((*f.Programs.Value)["kubelet"].Version)
	runner := folded(baseOf(strings.Trim(firstWord(line), `"`)))
	if !ok || minor < noOwnLog || runner != "kubelet.exe" {
		return nil
	}
	return one(finding.New(line, "kubelet's log is not stored"))
}

func firstWord(line string) string {
	if words := commandline.Split(line); len(words) > 0 {
		return words[0]
	}
	return ""
}

// largeLog is the size in bytes from which a log is reported.
const largeLog = 1 << 30

func lookAtLogSize(f *Facts) (all []finding.Finding) {
	for _, log := range *f.Logs.Value {
		if log.Bytes >= largeLog {
			all = append(all, finding.New(log.Path, "a log has grown to %s", ui.Size(log.Bytes)))
		}
	}
	return all
}
