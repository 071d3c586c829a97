package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

const kubeletService = "kubelet"

func needListeners(f *facts) error { return f.node.listeners.err }

// lookAtPorts finds the processes that use kubelet's ports, except an installed kubelet.
func lookAtPorts(f *facts) (problems []finding.Finding) {
	for _, port := range f.kubeletPorts() {
		i := slices.IndexFunc(f.node.listeners.value,
			func(l Listener) bool { return l.Port == port && !f.isKubelet(l) })
		if i < 0 {
			continue
		}
		l := f.node.listeners.value[i]
		problems = append(problems, finding.Finding{
			Severity: finding.Error, What: fmt.Sprintf("kubelet's port %d is in use by %s", port, l.owner()),
			Evidence: l.evidence(),
			Remedy:   "stop that program, or give it another port",
		})
	}
	return problems
}

// kubeletPorts returns the ports of kubelet's API and its health check. A value that is no port is
// replaced by kubelet's default.
func (f *facts) kubeletPorts() []uint16 {
	ports := []uint16{10250, 10248}
	for i, value := range []string{f.spec.Kubelet.Setting("port", "port"),
		f.spec.Kubelet.Setting("healthz-port", "healthzPort")} {
		if port, err := strconv.ParseUint(value, 10, 16); err == nil {
			ports[i] = uint16(port)
		}
	}
	return ports
}

// isKubelet reports whether the process that listens on a port is the process of the service
// kubelet, or a descendant of that process: the service may start kubelet through a log
// runner or nssm. If the port's process is unknown, the result is true while kubelet is
// running.
func (f *facts) isKubelet(l Listener) bool {
	s, ok := f.node.services.value[kubeletService]
	if !ok || !s.Running() || s.PID == 0 {
		return false
	}
	for pid, hops := l.PID, 0; pid != 0 && hops < 4; hops++ {
		if pid == s.PID {
			return true
		}
		pid = f.node.processes.value[pid].ParentPID
	}
	return l.PID == 0
}

func (l Listener) owner() string {
	switch {
	case l.Process != "" && l.PID != 0:
		return fmt.Sprintf("%s (process %d)", l.Process, l.PID)
	case l.PID != 0:
		return fmt.Sprintf("process %d", l.PID)
	}
	return "another program"
}

func (l Listener) evidence() string {
	return strings.TrimSpace(l.Address + " " + l.Image)
}

func needServices(f *facts) error { return f.node.services.err }

// lookAtKubeletService finds a service kubelet that swdt did not create: swdt's join would
// change it.
func lookAtKubeletService(f *facts) []finding.Finding {
	s, ok := f.node.services.value[kubeletService]
	if !ok || f.owns(s) {
		return nil
	}
	p := finding.Finding{
		Severity: finding.Error, Evidence: s.CommandLine,
		Remedy: "take the earlier installation away (sc.exe delete kubelet) if the machine is no node of another " +
			"cluster",
	}
	switch program := s.Program(); {
	case strings.HasSuffix(program, `nssm.exe`):
		p.What = "the service kubelet runs under nssm, from an earlier installation"
	case !isBelow(program, v1alpha1.KubernetesFolder):
		p.What = "the service kubelet runs a program outside of " + v1alpha1.KubernetesFolder +
			", of an earlier installation"
	default:
		p.Severity, p.What = finding.Warning, "there is a service kubelet that swdt has not made; it will be changed"
		p.Remedy = "make sure that no other tool still manages it"
	}
	return []finding.Finding{p}
}

// Program returns the executable of the service, in lower case. A path with spaces may be
// unquoted.
func (s Service) Program() string {
	line := clean(s.CommandLine)
	if end := strings.Index(line, ".exe"); end >= 0 && !strings.HasPrefix(line, `"`) {
		return line[:end+len(".exe")]
	}
	if words := commandline.Split(line); len(words) > 0 {
		return words[0]
	}
	return ""
}

// owns reports whether an earlier run of swdt has created the service.
func (f *facts) owns(s Service) bool {
	return slices.ContainsFunc(f.own.Services, func(name string) bool { return strings.EqualFold(name, s.Name) })
}

// isBelow reports whether path equals folder or is below it.
func isBelow(path, folder string) bool {
	path, folder = clean(path), clean(folder)
	return path == folder || strings.HasPrefix(path, folder+`\`)
}

// clean returns the same text for paths that Windows treats as equal.
func clean(path string) string {
	path = strings.ToLower(strings.ReplaceAll(path, "/", `\`))
	return strings.TrimRight(path, `\`)
}
