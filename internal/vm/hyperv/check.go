package hyperv

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Check reports what your machine lacks for a VM. If m is the zero Machine, it reports only what
// every VM needs.
func (d *Driver) Check(ctx context.Context, m vm.Machine) []finding.Problem {
	var other *SystemError
	if _, err := d.program(); errors.As(err, &other) {
		return []finding.Problem{problem("system", finding.Error, "Hyper-V needs Windows",
			"run swdt on Windows, or write driver: qemu in spec.machine", "this is "+other.System)}
	}
	if problems := d.checkModule(ctx); len(problems) > 0 {
		return problems
	}
	// Remove this finding once a person has run the driver on a real Hyper-V.
	all := []finding.Problem{problem("hyperv", finding.Info, "this driver has not run on a real Hyper-V yet",
		"report what does not work", "its tests use a program that stands for Hyper-V")}
	all = append(all, d.checkSwitch(ctx, m)...)
	return append(all, d.checkFiles(ctx, m)...)
}

// checkModule checks that Hyper-V's module is installed and that this user may use Hyper-V.
func (d *Driver) checkModule(ctx context.Context) []finding.Problem {
	var found struct{ Modules list[string] }
	err := d.ask(ctx, "find the module Hyper-V", "modules", nil, &found)
	if err != nil {
		return []finding.Problem{problem("powershell", finding.Error, "PowerShell does not run",
			"repair it: swdt drives Hyper-V with it", err.Error())}
	}
	if len(found.Modules) == 0 {
		return []finding.Problem{problem("hyperv", finding.Error, "Hyper-V or its PowerShell module is not installed",
			"install it: `Enable-WindowsOptionalFeature -Online -FeatureName Microsoft-Hyper-V -All` on Windows 10 and 11, "+
				"`Install-WindowsFeature Hyper-V -IncludeManagementTools` on Windows Server", "there is no module Hyper-V")}
	}
	var hosts struct{ Hosts list[string] }
	err = d.ask(ctx, "ask Hyper-V", "hosts", nil, &hosts)
	if err != nil {
		return []finding.Problem{problem("hyperv", finding.Error, "Hyper-V does not answer you",
			"run swdt as administrator, or join the group Hyper-V Administrators and log in again", err.Error())}
	}
	return nil
}

// checkSwitch checks that the VM's virtual switch exists.
func (d *Driver) checkSwitch(ctx context.Context, m vm.Machine) []finding.Problem {
	if m.Network.Bridge == "" {
		return nil
	}
	var found struct{ Switches list[string] }
	err := d.ask(ctx, "list the virtual switches", "switches", nil, &found)
	if err != nil {
		return []finding.Problem{problem("switch", finding.Error, "the virtual switches cannot be listed",
			"run swdt as administrator", err.Error())}
	}
	names := []string(found.Switches)
	if slices.Contains(names, m.Network.Bridge) {
		return nil
	}
	evidence := "there is none"
	if len(names) > 0 {
		evidence = "there are " + ui.Alternatives(names)
	}
	return []finding.Problem{problem("switch", finding.Error, "there is no virtual switch "+m.Network.Bridge,
		"write the name of one as spec.machine.network.bridge, or make one with `New-VMSwitch`", evidence)}
}

// checkFiles checks the image and the discs.
func (d *Driver) checkFiles(ctx context.Context, m vm.Machine) []finding.Problem {
	var all []finding.Problem
	if m.Image.Base != "" {
		base, err := d.image(ctx, m.Image.Base)
		switch {
		case err != nil:
			all = append(all, problem("image", finding.Error, "the image of the VM cannot be used",
				"name a VHDX of a Windows of generation 2", err.Error()))
		case base.VhdFormat != "VHDX":
			all = append(all, problem("image", finding.Error, "the image of the VM is no VHDX",
				"convert it with `Convert-VHD`", "Hyper-V reports the format "+base.VhdFormat))
		}
	}
	for _, disc := range m.Discs {
		if _, err := os.Stat(disc); err != nil {
			all = append(all, problem("disc", finding.Error, "a disc of the VM cannot be read", "correct its path", err.Error()))
		}
	}
	return all
}

func problem(check string, severity finding.Severity, what, remedy, evidence string) finding.Problem {
	return finding.Problem{Check: check, Where: finding.OnMachine, Finding: finding.Finding{
		Severity: severity, What: what, Remedy: remedy, Evidence: evidence,
	}}
}
