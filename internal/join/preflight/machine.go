package preflight

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/swdt-dev/swdt/internal/join/combination"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	containersFeature = "Containers"
	hyperVFeature     = "Microsoft-Hyper-V"

	gb = 1_000_000_000
	// An image of Server Core takes about 5 GB unpacked. With less than minDisk there is no room
	// even for kubelet, containerd and a pause image.
	minDisk, enoughDisk = 2 * gb, 15 * gb
	// Windows Server needs half a GB for itself, or 2 GB with Server Core's usual services. kubelet
	// and containerd need some hundred MB.
	minMemory, enoughMemory, enoughFreeMemory = 1 * gb, 3 * gb, gb / 2

	// A certificate that the cluster signs is valid from five minutes before the
	// signing.
	clockWarning, clockError = 30 * time.Second, 5 * time.Minute
	maxNodeName              = 63
)

// windowsName returns the name of images for this build of Windows.
func (f *facts) windowsName() string {
	if f.node == nil {
		return ""
	}
	return WindowsName(f.node.machine.Build)
}

// WindowsName returns the name of images for a build such as 20348.2849; "" if Kubernetes
// does not support that build.
func WindowsName(build string) string {
	build, _, _ = strings.Cut(build, ".")
	return map[string]string{"17763": "ltsc2019", "20348": "ltsc2022", "25398": "23H2", "26100": "ltsc2025"}[build]
}

func lookAtWindows(f *facts) []finding.Finding {
	m := f.node.machine
	seen := strings.TrimSpace(m.Product + " (build " + m.Build + ")")
	switch {
	case f.windowsName() == "":
		return []finding.Finding{{
			Severity: finding.Error, What: "Kubernetes does not support this Windows", Evidence: seen,
			Remedy: "use Windows Server 2019 (17763), 2022 (20348), 23H2 (25398) or 2025 (26100)",
		}}
	case m.Product != "" && !strings.Contains(m.Product, "Server"):
		return []finding.Finding{{
			Severity: finding.Warning, What: "this is no Windows Server: Kubernetes does not support it as a node",
			Evidence: seen,
			Remedy:   "use Windows Server for more than a try",
		}}
	}
	return nil
}

func lookAtArchitecture(f *facts) []finding.Finding {
	if f.node.machine.Architecture == "amd64" {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Error, What: "Kubernetes for Windows is published for amd64 only",
		Evidence: f.node.machine.Architecture,
		Remedy:   "use a machine with an x86-64 processor",
	}}
}

func lookAtRights(f *facts) []finding.Finding {
	if f.node.machine.Elevated {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Error, What: "the user may not change the machine",
		Remedy: "make spec.credentials.username a member of Administrators; if it is already a member, set " +
			"LocalAccountTokenFilterPolicy=1 or use the built-in Administrator",
	}}
}

func lookAtDisk(f *facts) []finding.Finding {
	free := f.node.machine.DiskFree
	if free >= enoughDisk {
		return nil
	}
	p := finding.Finding{
		Severity: finding.Warning, What: "little free space on " + f.node.machine.SystemDrive +
			" for Windows container images",
		Evidence: size(free) + " free", Remedy: fmt.Sprintf("make room: %s or more", size(enoughDisk)),
	}
	if free < minDisk {
		p.Severity, p.What = finding.Error, "too little free space on "+f.node.machine.SystemDrive
	}
	return []finding.Finding{p}
}

func lookAtMemory(f *facts) []finding.Finding {
	m := f.node.machine
	p := finding.Finding{
		Evidence: size(m.Memory) + ", " + size(m.MemoryFree) + " of it free",
		Remedy:   fmt.Sprintf("give the machine %s or more", size(enoughMemory)),
	}
	switch {
	case m.Memory == 0: // unknown: Wine sometimes answers so
		return nil
	case m.Memory < minMemory:
		p.Severity, p.What = finding.Error, "too little memory for Windows, kubelet and containerd"
	case m.Memory < enoughMemory:
		p.Severity, p.What = finding.Warning, "little memory: hardly any is left for pods"
	case m.MemoryFree < enoughFreeMemory:
		p.Severity, p.What, p.Remedy = finding.Warning, "nearly all memory is in use",
			"end programs that use much memory, or give the machine more"
	default:
		return nil
	}
	return []finding.Finding{p}
}

func size(bytes uint64) string { return ui.Size(int64(bytes)) }

func lookAtPendingReboot(f *facts) []finding.Finding {
	if len(f.node.machine.PendingReboot) == 0 {
		return nil
	}
	p := finding.Finding{
		Severity: finding.Error, What: "a reboot is pending",
		Evidence: strings.Join(f.node.machine.PendingReboot, "; "),
		Remedy:   "reboot the machine, or let swdt do it with --allow-reboot",
	}
	if f.mayReboot {
		p.Severity, p.Remedy = finding.Info, "swdt reboots the machine if a step needs a reboot"
	}
	return []finding.Finding{p}
}

func needFeatures(f *facts) error { return f.node.features.err }

func lookAtContainers(f *facts) []finding.Finding {
	state, ok := f.node.features.value[containersFeature]
	switch {
	case !ok:
		return []finding.Finding{{
			Severity: finding.Error, What: "this Windows does not have the feature Containers",
			Remedy: "use an edition of Windows Server that has it",
		}}
	case state == platform.FeatureEnabled, f.mayReboot:
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Warning, What: "the feature Containers is not enabled; enabling it takes a reboot",
		Evidence: string(state),
		Remedy:   "allow it with --allow-reboot",
	}}
}

func lookAtVirtualization(f *facts) []finding.Finding {
	if !combination.WantsHyperV(f.spec) {
		return nil
	}
	const why = "spec.kubernetes.containerd.config asks for Hyper-V isolation"
	state, ok := f.node.features.value[hyperVFeature]
	switch hypervisor := f.node.services.value["hvhost"]; {
	case !ok:
		return []finding.Finding{{Severity: finding.Error, What: why + ", and this Windows does not have Hyper-V",
			Remedy: "use an edition with Hyper-V, or process isolation"}}
	case !f.node.machine.Virtualization && !hypervisor.Running():
		return []finding.Finding{{
			Severity: finding.Error, What: why + ", and the processor's virtualization is off",
			Remedy: "turn it on in the firmware; for a virtual machine, turn on nested virtualization",
		}}
	case state != platform.FeatureEnabled:
		return []finding.Finding{{
			Severity: finding.Warning, What: why + ", and Hyper-V is not enabled", Evidence: string(state),
			Remedy: "add Microsoft-Hyper-V to spec.setup.features and run `swdt setup`",
		}}
	}
	return nil
}

var errNoName = errors.New("the node's name is not known without the node")

func needName(f *facts) error { return f.node.name.err }

func lookAtHostname(f *facts) []finding.Finding {
	name, what := f.nodeName(), "spec.kubernetes.join.nodeName"
	remedy := "use lower-case letters, digits, - and ., at most 63"
	if f.spec.Join.NodeName == "" {
		what, remedy = "the machine's name, in lower case,",
			"rename the computer, or set spec.kubernetes.join.nodeName: "+remedy
	}
	if len(name) <= maxNodeName && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Error, What: fmt.Sprintf("%s is not a valid node name: %q", what, name),
		Evidence: fmt.Sprintf("%d characters", len(name)), Remedy: remedy,
	}}
}

// needClocks returns an error unless the clocks of the node and of the cluster are known.
// Without a cluster there is only one clock.
func needClocks(f *facts) error {
	switch {
	case f.cluster == nil:
		return fmt.Errorf("there is no cluster to compare the clock with: %w", errReportedElsewhere)
	case f.cluster.version.err != nil:
		return errReportedElsewhere
	case errors.Is(f.cluster.clock.err, errors.ErrUnsupported):
		return fault.ErrNotSupported
	}
	return f.cluster.clock.err
}

func lookAtClock(f *facts) []finding.Finding {
	node, server := f.node.clock, f.cluster.clock.value
	ahead, giveOrTake := node.Ahead-server.Ahead, node.GiveOrTake+server.GiveOrTake
	off := ahead.Abs() - giveOrTake // the clocks differ by at least this time
	if off <= clockWarning {
		return nil
	}
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	p := finding.Finding{
		Severity: finding.Warning,
		What:     fmt.Sprintf("the node's clock is %s %s the API server's", ahead.Abs().Round(time.Second), direction),
		Evidence: "the node's time is " + f.node.machine.Time.UTC().Format(time.RFC3339),
		Remedy:   "set it: w32tm /resync /force, or for a virtual machine its host's time service",
	}
	if off > clockError {
		p.Severity, p.What = finding.Error, p.What+": certificates count as not yet valid, or as expired"
	}
	return []finding.Finding{p}
}
