package hyperv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/node/powershell"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// cleanLimit bounds the removal of the remains of a failed Create.
	cleanLimit = time.Minute
	// mergeLimit bounds the wait for Hyper-V to close the disks of a VM that was removed.
	mergeLimit = 2 * time.Minute
)

// disk returns the path of a VM's disk.
func disk(m vm.Machine) string { return filepath.Join(folder(m), "disk.vhdx") }

// Create makes the disk and the VM. If it fails, it removes both.
func (d *Driver) Create(ctx context.Context, m vm.Machine) (err error) {
	if _, _, err := d.find(ctx, m); err == nil {
		return vm.ErrExists
	} else if !errors.Is(err, vm.ErrAbsent) {
		return err
	}
	if err := os.MkdirAll(folder(m), 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
			defer cancel()
			err = errors.Join(err, d.Delete(clean, m))
		}
	}()
	if err := d.makeDisk(ctx, m); err != nil {
		return err
	}
	automatic, err := d.makesCheckpoints(ctx)
	if err != nil {
		return err
	}
	var made struct{ VMs powershell.List[machine] }
	if err := d.ask(ctx, "make the VM", &made, newVM(m, automatic)...); err != nil {
		return err
	}
	if len(made.VMs) != 1 {
		return fmt.Errorf("make the VM: Hyper-V reports %d VMs", len(made.VMs))
	}
	if err := checkID(made.VMs[0].ID); err != nil {
		return err
	}
	return writeRecord(m, record{ID: made.VMs[0].ID, Memory: []string{}})
}

// makeDisk makes the disk, which is empty or laid over the image.
func (d *Driver) makeDisk(ctx context.Context, m vm.Machine) error {
	path := powershell.With("Path", powershell.String(disk(m)))
	if m.Image.Base == "" {
		return d.do(ctx, "make the disk", powershell.Do(powershell.Call(`Hyper-V\New-VHD`, path,
			powershell.With("SizeBytes", powershell.Number(m.Disk)), powershell.Switch("Dynamic"))))
	}
	base, err := d.image(ctx, m.Image.Base)
	if err != nil {
		return err
	}
	if base.Size > m.Disk {
		return fmt.Errorf("the image %s is larger than spec.machine.disk: %d bytes; write at least that size", m.Image.Base,
			base.Size)
	}
	script := powershell.Script{powershell.Do(powershell.Call(`Hyper-V\New-VHD`, path,
		powershell.With("ParentPath", powershell.String(m.Image.Base)), powershell.Switch("Differencing")))}
	if base.Size < m.Disk {
		script = append(script, powershell.Do(powershell.Call(`Hyper-V\Resize-VHD`, path,
			powershell.With("SizeBytes", powershell.Number(m.Disk)))))
	}
	return d.do(ctx, "make the disk", script...)
}

// vhd is a disk image as Hyper-V reports it.
type vhd struct {
	VhdFormat string // VHD, VHDX, VHDSet
	Size      int64  // bytes that a guest sees
}

// image returns the format and the size that Hyper-V reports for a disk image.
func (d *Driver) image(ctx context.Context, path string) (vhd, error) {
	if !strings.EqualFold(filepath.Ext(path), ".vhdx") {
		return vhd{}, fmt.Errorf("the image %s is no VHDX; `qemu-img convert -O vhdx` makes one of it", path)
	}
	var found struct{ Images powershell.List[vhd] }
	err := d.ask(ctx, "look at the image", &found, powershell.AsJSON(map[string]powershell.Pipeline{"Images": {
		powershell.Call(`Hyper-V\Get-VHD`, powershell.With("Path", powershell.String(path))),
		powershell.Select(powershell.Of("VhdFormat", powershell.AsText), powershell.Of("Size", powershell.AsIs)),
	}}))
	if err == nil && len(found.Images) != 1 {
		err = fmt.Errorf("look at the image %s: Hyper-V reports %d images", path, len(found.Images))
	}
	if err != nil {
		return vhd{}, err
	}
	return found.Images[0], nil
}

// makesCheckpoints reports whether Hyper-V makes checkpoints on its own unless it is asked not to. The Hyper-V of
// Windows Server 2016 does not, and its Set-VM lacks the parameter (hashicorp/vagrant#10251).
func (d *Driver) makesCheckpoints(ctx context.Context) (bool, error) {
	var found struct {
		Commands powershell.List[struct{ Parameters powershell.List[string] }]
	}
	err := d.ask(ctx, "look at Set-VM", &found, powershell.AsJSON(map[string]powershell.Pipeline{"Commands": {
		powershell.Call("Get-Command", powershell.With("Name", powershell.String(`Hyper-V\Set-VM`))),
		powershell.Select(powershell.Of("Parameters", powershell.AsKeys)),
	}}))
	if err == nil && len(found.Commands) != 1 {
		err = fmt.Errorf("look at Set-VM: PowerShell reports %d commands", len(found.Commands))
	}
	if err != nil {
		return false, err
	}
	return slices.Contains(found.Commands[0].Parameters, automaticCheckpoints), nil
}

// automaticCheckpoints is the parameter of Set-VM that a newer Hyper-V has.
const automaticCheckpoints = "AutomaticCheckpointsEnabled"

// newVM returns the script that makes a VM with a disk that exists already, and prints the VM's ID. The parameter
// automatic reports whether Hyper-V makes checkpoints on its own.
func newVM(m vm.Machine, automatic bool) powershell.Script {
	const made = powershell.Variable("vm")
	of := powershell.With("VM", made)
	text := func(name, value string) powershell.Param { return powershell.With(name, powershell.String(value)) }
	settings := powershell.Call(`Hyper-V\Set-VM`, of, text("Notes", notes(m)),
		powershell.With("ProcessorCount", powershell.Number(m.CPUs)), powershell.Switch("StaticMemory"),
		text("CheckpointType", "Standard"), text("AutomaticStartAction", "Nothing"),
		text("AutomaticStopAction", "ShutDown"))
	if automatic {
		settings.Params = append(settings.Params, powershell.With(automaticCheckpoints, powershell.Flag(false)))
	}
	script := powershell.Script{
		powershell.Keep(string(made), powershell.Call(`Hyper-V\New-VM`, text("Name", filepath.Base(m.Folder)),
			powershell.With("Generation", powershell.Number(2)),
			powershell.With("MemoryStartupBytes", powershell.Number(m.Memory)),
			text("VHDPath", disk(m)), text("Path", folder(m)), text("SwitchName", m.Network.Bridge))),
		powershell.Do(settings),
		// HNS in the guest sends frames with other MAC addresses than the card's own.
		powershell.Do(powershell.Call(`Hyper-V\Set-VMNetworkAdapter`, of,
			text("StaticMacAddress", strings.ToUpper(strings.ReplaceAll(m.Network.MAC, ":", ""))),
			text("MacAddressSpoofing", "On"))),
	}
	firmware := powershell.Call(`Hyper-V\Set-VMFirmware`, of, text("EnableSecureBoot", "Off"))
	if m.Firmware.SecureBoot {
		firmware = powershell.Call(`Hyper-V\Set-VMFirmware`, of, text("EnableSecureBoot", "On"),
			text("SecureBootTemplate", "MicrosoftWindows"))
	}
	script = append(script, powershell.Do(firmware))
	if m.Firmware.TPM {
		script = append(script,
			powershell.Do(powershell.Call(`Hyper-V\Set-VMKeyProtector`, of, powershell.Switch("NewLocalKeyProtector"))),
			powershell.Do(powershell.Call(`Hyper-V\Enable-VMTPM`, of)))
	}
	for _, disc := range m.Discs {
		script = append(script, powershell.Do(powershell.Call(`Hyper-V\Add-VMDvdDrive`, of, text("Path", disc))))
	}
	return append(script, powershell.AsJSON(map[string]powershell.Pipeline{"VMs": {
		powershell.Call("Write-Output", powershell.With("InputObject", made)),
		powershell.Select(powershell.Of("Id", powershell.AsText)),
	}}))
}

// Delete removes the VM, its disk and its checkpoints.
func (d *Driver) Delete(ctx context.Context, m vm.Machine) error {
	now, _, err := d.find(ctx, m)
	switch {
	case err == nil && now.executes():
		return vm.ErrRunning
	case err == nil:
		err = d.do(ctx, "remove the VM", powershell.Do(powershell.Call(`Hyper-V\Remove-VM`, now.parameter(),
			powershell.Switch("Force"), powershell.With("Confirm", powershell.Off{}))))
	}
	if err != nil && !errors.Is(err, vm.ErrAbsent) {
		return err
	}
	// After Remove-VM, Hyper-V merges the checkpoints of the VM, and has the VM's disk open
	// meanwhile.
	err = wait.Condition{
		Name: "Hyper-V to close the VM's disk", Interval: 100 * time.Millisecond, MaxInterval: 2 * time.Second,
		Limit: mergeLimit,
		Look:  func(context.Context) error { return os.RemoveAll(folder(m)) },
	}.Wait(ctx)
	if err != nil {
		return fmt.Errorf("remove the VM's disk: %w", err)
	}
	if err := os.Remove(recordPath(m)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
