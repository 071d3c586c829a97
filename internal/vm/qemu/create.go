package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
)

// staging begins the names of folders for files that are being made.
const staging = "new"

// Create makes the VM's disk, firmware variables and TPM. It makes everything in a staging folder,
// and moves the disk to its place last: until then, the VM is absent.
func (d *Driver) Create(ctx context.Context, m vm.Machine) (err error) {
	if err := supported("create VM " + m.Name); err != nil {
		return err
	}
	f := filesOf(m)
	if exists(f.disk()) {
		return vm.ErrExists
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := valid(m); err != nil {
		return err
	}
	isNew := !exists(m.Folder)
	if err := owned(m); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, undo(m, isNew))
		}
	}()
	aside, err := localfile.Stage(m.Folder, staging)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, aside.Remove()) }()
	if err := d.make(ctx, m, files{aside.Path}); err != nil {
		return err
	}
	for _, place := range []func(files) string{files.made, files.tpm, files.vars, files.disk} {
		from := place(files{aside.Path})
		if err := os.Rename(from, place(f)); err != nil && (exists(from) || from != files.tpm(files{aside.Path})) {
			return err
		}
	}
	return nil
}

// make makes all files of a VM in the folder of f, which is a staging folder and not the VM's own.
func (d *Driver) make(ctx context.Context, m vm.Machine, f files) error {
	uefi, err := d.firmware(m)
	if err != nil {
		return err
	}
	machine, err := d.machineType(ctx)
	if err != nil {
		return err
	}
	if err := writeRecord(f.made(), made{machine}); err != nil {
		return err
	}
	if m.Firmware.TPM {
		if err := os.Mkdir(f.tpm(), 0o700); err != nil {
			return err
		}
	}
	if err := d.makeVars(ctx, m, uefi.Vars, f.vars()); err != nil {
		return err
	}
	return d.makeDisk(ctx, m, f.disk())
}

// valid returns an error if a record has a value that cannot be used on QEMU's command line.
func valid(m vm.Machine) error {
	problem := ""
	switch {
	case len(m.UUID) != 36 || strings.Trim(m.UUID, "0123456789abcdef-") != "":
		problem = fmt.Sprintf("its UUID %q has not the form of a UUID", m.UUID)
	case m.CPUs < 1 || m.CPUs > 255:
		problem = fmt.Sprintf("%d CPUs are not between 1 and 255", m.CPUs)
	case m.Memory < 64<<20 || m.Memory > 16<<40:
		problem = fmt.Sprintf("%d bytes of memory are not between 64 MiB and 16 TiB", m.Memory)
	case m.Disk < 1<<20 || m.Disk > 64<<40:
		problem = fmt.Sprintf("a disk of %d bytes is not between 1 MiB and 64 TiB", m.Disk)
	case !slices.Contains([]vm.Display{"", vm.DisplaySocket, vm.DisplayPort, vm.NoDisplay}, m.Display):
		problem = fmt.Sprintf("its display %q is none of unix, port and none", m.Display)
	case len(m.Discs) > maxDiscs:
		problem = fmt.Sprintf("it has %d discs, but a VM has only %d CD drives", len(m.Discs), maxDiscs)
	case m.Network.Mode != vm.UserMode && m.Network.Tap == "":
		problem = fmt.Sprintf("mode %s of its network needs the name of a tap", m.Network.Mode)
	}
	if problem != "" {
		return fmt.Errorf("%s; correct its record", problem)
	}
	return nil
}

// undo removes the files that a failed Create has made. If folder is set, it also removes the VM's
// folder, unless something else is in it.
func undo(m vm.Machine, folder bool) error {
	err := removeFiles(m)
	if folder {
		_ = os.Remove(m.Folder) // the folder stays if something else is in it
	}
	return err
}

// Delete removes everything that the driver has made in the VM's folder, and the folder if
// nothing else is in it.
func (d *Driver) Delete(ctx context.Context, m vm.Machine) error {
	now, err := d.find(m)
	if err != nil {
		return err
	}
	if now.qemu != nil {
		return vm.ErrRunning
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := d.clean(ctx, m, now.started); err != nil {
		return err
	}
	if err := removeFiles(m); err != nil {
		return err
	}
	_ = os.Remove(m.Folder) // the folder stays if something else is in it, such as the record
	return nil
}

// removeFiles removes the driver's files, the disk last, since a VM without a disk counts as
// absent.
func removeFiles(m vm.Machine) error {
	f := filesOf(m)
	rest, err := filepath.Glob(filepath.Join(pattern(m.Folder), staging+"-*"))
	if err != nil {
		return err
	}
	for _, path := range append(rest, f.all()...) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// pattern quotes a path for a pattern of filepath.Glob.
func pattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// clean ends the helpers of a VM whose QEMU has ended, its TPM and its network, waits until the VM's logs are complete,
// and removes the sockets and the folder run/.
func (d *Driver) clean(ctx context.Context, m vm.Machine, s started) error {
	if err := errors.Join(endTPM(ctx, m), endOutbound(ctx, m, s), endLogs(ctx, m, s)); err != nil {
		return err
	}
	for _, folder := range append(socketFolders(m), s.Sockets) { // a killed swdt may have recorded none
		if folder != filesOf(m).run() && outside(folder) {
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(filesOf(m).run())
}

// outside reports whether a folder, which a record names, can be a folder that makeSockets has made
// outside of the VM's folder. swdt removes no other folder that a record names.
func outside(folder string) bool {
	name := filepath.Base(folder)
	parent := filepath.Base(filepath.Dir(folder))
	return filepath.IsAbs(folder) && len(name) == 16 && strings.Trim(name, "0123456789abcdef") == "" &&
		(parent == "swdt" || strings.HasPrefix(parent, "swdt-")) && private(folder) == nil
}

// mark returns words that are in the command line of a VM's QEMU, and of no other process.
func mark(m vm.Machine) []string { return []string{"-uuid", m.UUID} }

// processOf returns the process with a number if it is the VM's QEMU; nil if it is not.
func processOf(m vm.Machine, pid int) *process.Process { return process.Find(pid, mark(m)...) }
