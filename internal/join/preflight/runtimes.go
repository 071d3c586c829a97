package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

const containerdService = "containerd"

// servicesThatMatter returns the names, in lower case, of the services about which a check needs to
// know the command line or whether the service exists.
func servicesThatMatter() []string {
	return slices.Concat([]string{kubeletService, containerdService}, dockers(), distributions())
}

// dockers returns the services of other container runtimes, and distributions returns the
// services of other programs that make the machine a node.
func dockers() []string       { return []string{"docker", "com.docker.service", "cri-docker", "cri-dockerd"} }
func distributions() []string { return []string{"rke2", "rancher-wins", "k0sworker"} }

func lookAtRuntimes(f *facts) (problems []finding.Finding) {
	services := f.node.services.value
	containerd, there := services[containerdService]
	switch {
	case there && !f.owns(containerd) && !isBelow(containerd.Program(), v1alpha1.ContainerdFolder):
		problems = append(problems, finding.Finding{
			Severity: finding.Error, What: "another containerd is installed, and has the service's name",
			Evidence: containerd.CommandLine,
			Remedy: "remove it (sc.exe stop containerd, sc.exe delete containerd), or move it to " +
				v1alpha1.ContainerdFolder,
		})
	case f.node.runtime.err == nil && f.node.runtime.value != "" && !(there && containerd.Running()):
		problems = append(problems, finding.Finding{
			Severity: finding.Error, What: "a container runtime that is no service has containerd's pipe",
			Evidence: f.node.runtime.value + " on " + v1alpha1.ContainerdPipe,
			Remedy:   "end it: see `swdt exec -- tasklist`",
		})
	}
	for _, name := range dockers() {
		if s, ok := services[name]; ok {
			problems = append(problems, finding.Finding{
				Severity: finding.Warning, What: fmt.Sprintf("another container runtime is installed: %s, which is %s",
					s.Name, ui.Words(s.State)), Evidence: s.CommandLine,
				Remedy: "remove it: kubelet uses containerd, and two runtimes share networks and disk badly",
			})
		}
	}
	for _, name := range distributions() {
		if s, ok := services[name]; ok {
			problems = append(problems, finding.Finding{
				Severity: finding.Error,
				What:     "the machine is managed by another distribution of Kubernetes: service " + s.Name,
				Evidence: s.CommandLine,
				Remedy:   "uninstall that program first",
			})
		}
	}
	return problems
}

// needDefender returns the error of reading Defender's settings. If the user is not elevated, it
// adds errReportedElsewhere: Windows denies such users access, and another check reports that.
func needDefender(f *facts) error {
	if f.node.defender.err != nil && !f.node.machine.Elevated {
		return errors.Join(errReportedElsewhere, f.node.defender.err)
	}
	return f.node.defender.err
}

// lookAtDefender finds a Defender that scans every file of every layer, so that pulling
// images and starting pods is several times slower.
func lookAtDefender(f *facts) []finding.Finding {
	d := f.node.defender.value
	if !d.Protects || slices.ContainsFunc(d.Exclusions, coversContainerd) {
		return nil
	}
	const program = v1alpha1.ContainerdFolder + `\bin\containerd.exe`
	return []finding.Finding{{
		Severity: finding.Warning,
		What:     "Microsoft Defender scans every file of every image: pulling images and starting pods is slow",
		Evidence: "real-time protection is on, containerd is not excluded",
		Remedy: fmt.Sprintf(`set spec.setup.defender of the node file and run "swdt setup", or, in PowerShell on the node: `+
			`Add-MpPreference -ExclusionProcess '%s' -ExclusionPath 'C:\ProgramData\containerd'`, program),
	}}
}

// coversContainerd reports whether an exclusion covers containerd's process, or its folder
// of images.
func coversContainerd(exclusion string) bool {
	name := clean(exclusion)
	return name == "containerd.exe" || strings.HasSuffix(name, `\containerd.exe`) ||
		isBelow(`C:\ProgramData\containerd\root`, exclusion)
}
