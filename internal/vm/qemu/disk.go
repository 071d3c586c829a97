package qemu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/firmware"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qcow2"
)

// base checks the image that a VM's disk is laid over, and returns the size of the image's disk in
// bytes; 0 if the VM has no image. QEMU opens the image with your rights, so base refuses an image
// that leads to other files. The driver calls base each time before QEMU opens the image.
func base(m vm.Machine) (int64, error) {
	if m.Image.Base == "" {
		return 0, nil
	}
	if !filepath.IsAbs(m.Image.Base) {
		return 0, fmt.Errorf("its image %q is no absolute path", m.Image.Base)
	}
	size, err := standalone(m.Image.Base)
	if err != nil {
		return 0, err
	}
	if m.Disk < size {
		return 0, fmt.Errorf("a disk of %d bytes is smaller than its image %s of %d bytes; ask for a larger disk",
			m.Disk, m.Image.Base, size)
	}
	return size, nil
}

// standalone returns the size of an image's disk. QEMU opens the image by its path, later and with your rights, so
// standalone refuses one that another account could replace with an image that leads to other files.
func standalone(path string) (int64, error) {
	if err := localfile.CheckForeign(path); err != nil {
		return 0, fmt.Errorf("%w: copy it to a folder of yours", err)
	}
	return qcow2.Standalone(path)
}

// image runs qemu-img.
func (d *Driver) image(ctx context.Context, args ...string) error {
	path, err := program(d.options.Image, installQEMU)
	if err != nil {
		return err
	}
	_, err = run(ctx, path, args...)
	return err
}

// makeDisk makes a VM's disk. If the disk is an overlay, its header names the image for people
// only: QEMU gets the whole chain with its formats on the command line.
func (d *Driver) makeDisk(ctx context.Context, m vm.Machine, path string) error {
	if _, err := base(m); err != nil {
		return err
	}
	args := []string{"create", "-q", "-f", "qcow2"}
	if m.Image.Base != "" {
		args = append(args, "-u", "-F", "qcow2", "-b", m.Image.Base)
	}
	if err := d.image(ctx, append(args, path, strconv.FormatInt(m.Disk, 10))...); err != nil {
		return fmt.Errorf("make the disk: %w", err)
	}
	return os.Chmod(path, 0o600)
}

// makeVars makes the variables of a VM's firmware, as a qcow2 image, since a raw image allows no
// snapshots.
func (d *Driver) makeVars(ctx context.Context, m vm.Machine, template firmware.Image, path string) error {
	if m.Image.Vars != "" {
		if _, err := standalone(m.Image.Vars); err != nil {
			return fmt.Errorf("copy the firmware variables of the image: %w", err)
		}
		template = firmware.Image{Path: m.Image.Vars, Format: "qcow2"}
	}
	err := d.image(ctx, "convert", "-f", template.Format, "-O", "qcow2", template.Path, path)
	if err != nil {
		return fmt.Errorf("make the firmware variables: %w", err)
	}
	return os.Chmod(path, 0o600)
}

// diskSnapshot runs qemu-img snapshot on one image. action is -c to create, -a to apply, or -d to
// delete.
func (d *Driver) diskSnapshot(ctx context.Context, action, tag, path string) error {
	return d.image(ctx, "snapshot", "-q", action, tag, "--image-opts",
		"driver=qcow2,file.driver=file,file.filename="+commas(path))
}

// hasTag reports whether an image has a snapshot with this tag.
func (d *Driver) hasTag(ctx context.Context, tag, path string) (bool, error) {
	qemuImg, err := program(d.options.Image, installQEMU)
	if err != nil {
		return false, err
	}
	out, err := run(ctx, qemuImg, "snapshot", "-l", "--image-opts",
		"driver=qcow2,file.driver=file,file.filename="+commas(path))
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 1 && words[1] == tag {
			return true, nil
		}
	}
	return false, nil
}

// commas escapes a value for an option list of QEMU, whose items are separated by commas.
func commas(value string) string { return strings.ReplaceAll(value, ",", ",,") }
