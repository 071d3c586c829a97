package lint

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// lifecycleRules are about commands, probes and the end of containers.
func lifecycleRules() []Rule {
	return []Rule{
		{
			ID: "life-shell", Severity: finding.Warning, Effect: Fails,
			Title: "commands are programs that images for Windows have",
			Means: "the base images of Windows have no sh and no programs of /bin: the container does not start, or its probe fails, unless " +
				"the image brings the program.",
			Remedy: "call cmd, powershell or a program of the image", Source: introAt, windows: shells,
			Bad:  "  readinessProbe: {exec: {command: [sh, -c, 'test -f C:/ready']}}",
			Good: "  readinessProbe: {exec: {command: [cmd, /c, 'if not exist C:\\ready exit 1']}}",
		},
		{
			ID: "life-powershell", Severity: finding.Warning, Effect: Changed,
			Title:  "a probe with PowerShell has time to start it",
			Means:  "PowerShell alone starts in about a second on a busy node, and longer at first: the probe fails at its timeout.",
			Remedy: "write timeoutSeconds: 10, or probe with httpGet or tcpSocket", windows: slowProbes,
			Source: "https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/#configure-probes",
			Bad:    "  livenessProbe: {exec: {command: [powershell, -Command, Get-Service w3svc]}}",
			Good:   "  livenessProbe: {timeoutSeconds: 10, exec: {command: [powershell, -Command, Get-Service w3svc]}}",
		},
		{
			ID: "life-stopsignal", Severity: finding.Warning, Effect: Ignored, fix: removal(),
			Title: "stopSignal is SIGTERM or SIGKILL",
			Means: "the API server drops the field. With the feature gate ContainerStopSignals, which is off, it rejects other signals for Windows, " +
				"and any without spec.os.name.",
			Remedy: "remove stopSignal", Source: validationAt, windows: stopSignals,
			Bad: "  lifecycle: {stopSignal: SIGUSR1}", Good: "  lifecycle: {stopSignal: SIGTERM}",
		},
	}
}

// programs are those that a container runs: its command, its probes and its hooks.
type program struct {
	words []string
	path  path
	kind  string // such as readinessProbe
	probe *corev1.Probe
}

func (c container) programs() (all []program) {
	add := func(kind string, words []string, at path, probe *corev1.Probe) {
		if len(words) > 0 {
			all = append(all, program{words: words, path: at, kind: kind, probe: probe})
		}
	}
	add("command", c.Command, c.path.child("command"), nil)
	for _, probe := range []struct {
		name string
		is   *corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		if probe.is != nil && probe.is.Exec != nil {
			add(probe.name, probe.is.Exec.Command, c.path.child(probe.name, "exec", "command"), probe.is)
		}
	}
	if c.Lifecycle != nil {
		for _, hook := range []struct {
			name string
			is   *corev1.LifecycleHandler
		}{{"postStart", c.Lifecycle.PostStart}, {"preStop", c.Lifecycle.PreStop}} {
			if hook.is != nil && hook.is.Exec != nil {
				add("hook "+hook.name, hook.is.Exec.Command, c.path.child("lifecycle", hook.name, "exec", "command"), nil)
			}
		}
	}
	return all
}

// unixPrograms are programs of Linux that base images of Windows lack. curl, tar and ping are there.
func unixPrograms() []string {
	return []string{"sh", "bash", "ash", "cat", "grep", "ls", "test", "touch", "rm", "sleep", "wget", "pgrep", "pidof", "ps", "kill", "env"}
}

func shells(p *pods, found report) {
	for _, c := range p.containers() {
		for _, program := range c.programs() {
			name := program.words[0]
			unix := slices.ContainsFunc([]string{"/bin/", "/sbin/", "/usr/"}, func(folder string) bool { return strings.HasPrefix(name, folder) })
			if unix || slices.Contains(unixPrograms(), name) {
				found(seen{at: program.path, what: fmt.Sprintf("the %s of container %s is %s, which no base image of Windows has", program.kind, c.Name, name)})
			}
		}
	}
}

// baseName returns the name of a program of Windows without its folder and .exe, in lower case.
func baseName(program string) string {
	name := strings.ToLower(program)
	return strings.TrimSuffix(name[strings.LastIndexAny(name, `\/`)+1:], ".exe")
}

func slowProbes(p *pods, found report) {
	for _, c := range p.containers() {
		for _, program := range c.programs() {
			name := baseName(program.words[0])
			if program.probe == nil || program.probe.TimeoutSeconds > 2 || name != "powershell" && name != "pwsh" {
				continue
			}
			found(seen{at: program.path, what: fmt.Sprintf("the %s of container %s has %s to start PowerShell", program.kind, c.Name,
				finding.Several(max(1, int(program.probe.TimeoutSeconds)), "second"))})
		}
	}
}

func stopSignals(p *pods, found report) {
	for _, c := range p.containers() {
		if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
			continue
		}
		switch signal := *c.Lifecycle.StopSignal; {
		case !p.namesWindows():
			found(seen{at: c.path.child("lifecycle", "stopSignal"), what: "stopSignal needs spec.os.name"})
		case signal != "SIGTERM" && signal != "SIGKILL":
			found(seen{at: c.path.child("lifecycle", "stopSignal"), what: fmt.Sprintf("Windows pods have no stopSignal %s", signal)})
		}
	}
}
