package hyperv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	var made struct{ VMs list[machine] }
	err = d.ask(ctx, "make the VM", "new", arguments{
		"name": filepath.Base(m.Folder), "memory": m.Memory, "disk": disk(m), "folder": folder(m), "switch": m.Network.Bridge,
		"notes": notes(m), "processors": m.CPUs, "mac": strings.ToUpper(strings.ReplaceAll(m.Network.MAC, ":", "")),
		"secureBoot": m.Firmware.SecureBoot, "tpm": m.Firmware.TPM, "discs": append([]string{}, m.Discs...),
	}, &made)
	if err != nil {
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
	if m.Image.Base == "" {
		return d.do(ctx, "make the disk", "newDisk", arguments{"path": disk(m), "size": m.Disk})
	}
	base, err := d.image(ctx, m.Image.Base)
	if err != nil {
		return err
	}
	if base.Size > m.Disk {
		return fmt.Errorf("the image %s is larger than spec.machine.disk: %d bytes; write at least that size", m.Image.Base,
			base.Size)
	}
	return d.do(ctx, "make the disk", "newDiskOver", arguments{
		"path": disk(m), "base": m.Image.Base, "size": m.Disk, "grows": base.Size < m.Disk,
	})
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
	var found struct{ Images list[vhd] }
	err := d.ask(ctx, "look at the image", "image", arguments{"path": path}, &found)
	if err == nil && len(found.Images) != 1 {
		err = fmt.Errorf("look at the image %s: Hyper-V reports %d images", path, len(found.Images))
	}
	if err != nil {
		return vhd{}, err
	}
	return found.Images[0], nil
}

// Delete removes the VM, its disk and its checkpoints.
func (d *Driver) Delete(ctx context.Context, m vm.Machine) error {
	now, _, err := d.find(ctx, m)
	switch {
	case err == nil && now.executes():
		return vm.ErrRunning
	case err == nil:
		err = d.do(ctx, "remove the VM", "remove", now.argument())
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
