package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/accel"
	"github.com/swdt-dev/swdt/internal/vm/qemu/firmware"
)

// oldestMajor and oldestMinor are the first version of QEMU with everything that the driver uses.
// The feature that was added last is a network card on a Unix socket.
const oldestMajor, oldestMinor = 7, 2

// freeDisk is the free space, in bytes, that a VM needs at least, since its overlay and its
// firmware variables grow.
const freeDisk = 2 << 30

// Check reports what your machine lacks for a VM. If m is the zero Machine, it reports only what
// every VM needs.
func (d *Driver) Check(ctx context.Context, m vm.Machine) []finding.Problem {
	if err := supported("run VMs"); err != nil {
		return []finding.Problem{problem("system", finding.Error, "swdt cannot use QEMU on this system",
			"run swdt on Linux or macOS", err.Error())}
	}
	var all []finding.Problem
	for _, check := range []func(context.Context, vm.Machine) []finding.Problem{
		d.checkPrograms, d.checkAccelerator, d.checkFirmware, checkMemory, checkDisk, checkImage,
	} {
		all = append(all, check(ctx, m)...)
	}
	return all
}

func problem(check string, severity finding.Severity, what, remedy, evidence string) finding.Problem {
	return finding.Problem{Check: check, Where: finding.OnMachine, Finding: finding.Finding{
		Severity: severity, What: what, Remedy: remedy, Evidence: evidence,
	}}
}

func (d *Driver) checkPrograms(ctx context.Context, m vm.Machine) []finding.Problem {
	var all []finding.Problem
	for _, p := range []struct {
		check, name, remedy string
		needed              bool
	}{
		{"qemu", d.options.QEMU, installQEMU, true},
		{"qemu-img", d.options.Image, installQEMU, true},
		{"tpm", d.options.TPM, installTPM, m.Firmware.TPM},
		{"passt", d.options.Outbound, installOutbound, m.Network.Outbound()},
	} {
		if _, err := program(p.name, p.remedy); err != nil && p.needed {
			all = append(all, problem(p.check, finding.Error, "the program "+filepath.Base(p.name)+" is missing",
				p.remedy, err.Error()))
		}
	}
	version, err := d.version(ctx)
	switch {
	case len(all) > 0 && all[0].Check == "qemu":
	case err != nil:
		all = append(all, problem("qemu", finding.Error, "QEMU does not start", "reinstall it; "+installQEMU, err.Error()))
	case version.Major < oldestMajor || version.Major == oldestMajor && version.Minor < oldestMinor:
		all = append(all, problem("qemu", finding.Error, fmt.Sprintf("QEMU is older than %d.%d", oldestMajor, oldestMinor),
			"install a newer one: Debian 12 and Ubuntu 24.04 have one", "version "+version.String()))
	}
	return all
}

func (d *Driver) checkAccelerator(ctx context.Context, m vm.Machine) []finding.Problem {
	choice, err := d.best(ctx)
	if errors.Is(err, os.ErrNotExist) || ctx.Err() != nil {
		return nil // QEMU is missing, which checkPrograms has found already
	}
	const check = "accelerator"
	switch {
	case err != nil:
		return []finding.Problem{problem(check, finding.Error, "QEMU cannot run a test program",
			"reinstall it; "+installQEMU, err.Error())}
	case choice.Name == accel.TCG && m.Accelerator == accel.TCG:
		return nil // the user chose emulation
	case choice.Name == accel.TCG && m.Accelerator != "":
		return []finding.Problem{problem(check, finding.Error, "the accelerator "+m.Accelerator+" does not work",
			choice.Remedy, choice.Reason)}
	case choice.Name == accel.TCG:
		return []finding.Problem{problem(check, finding.Warning,
			"VMs run without hardware acceleration, ten times slower or worse", choice.Remedy, choice.Reason)}
	}
	return nil
}

func (d *Driver) checkFirmware(_ context.Context, m vm.Machine) []finding.Problem {
	_, err := d.firmware(m)
	var missing *firmware.MissingError
	switch {
	case errors.As(err, &missing):
		return []finding.Problem{problem("firmware", finding.Error, "there is no fitting UEFI firmware for QEMU",
			missing.Remedy(), err.Error())}
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return []finding.Problem{problem("firmware", finding.Error, "the firmware of QEMU cannot be listed",
			"repair the rights of its folder", err.Error())}
	}
	return nil
}

// checkDisk checks that the VM's folder, or the nearest folder above it that exists, has
// room.
func checkDisk(_ context.Context, m vm.Machine) []finding.Problem {
	folder := m.Folder
	if folder == "" {
		home, err := localfile.Home()
		if err != nil {
			return nil
		}
		folder = home
	}
	for !exists(folder) && filepath.Dir(folder) != folder {
		folder = filepath.Dir(folder)
	}
	if err := localfile.Fits(folder, freeDisk); err != nil {
		return []finding.Problem{problem("disk", finding.Error, "the disk for VMs is nearly full",
			"free some space, or use another folder", err.Error())}
	}
	return nil
}

// checkImage checks the image over which the VM's disk will be laid, and the VM's discs.
func checkImage(_ context.Context, m vm.Machine) []finding.Problem {
	var all []finding.Problem
	if _, err := base(m); err != nil {
		all = append(all, problem("image", finding.Error, "the image of the VM cannot be used",
			"name a standalone qcow2 image that the VM's disk is large enough for", err.Error()))
	}
	for _, disc := range m.Discs {
		file, _, err := localfile.OpenRegular(disc)
		if err != nil {
			all = append(all, problem("disc", finding.Error, "the disc "+filepath.Base(disc)+" cannot be read",
				"correct its path or its rights", err.Error()))
			continue
		}
		_ = file.Close() // nothing was written, so an error does not matter
	}
	return all
}
