package qemu

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
)

// tagOf returns the tag that names a snapshot inside the images. A name may be any text, but a
// tag must not look like a number or an option of qemu-img.
func tagOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "swdt-" + hex.EncodeToString(sum[:8])
}

func (f files) snapshot(tag string) string    { return filepath.Join(f.snapshots(), tag+".json") }
func (f files) snapshotTPM(tag string) string { return filepath.Join(f.snapshots(), tag+".tpm") }

// maxName bounds the name of a snapshot in bytes.
const maxName = 200

// Save saves a snapshot. It writes the record last: an interrupted Save leaves no snapshot, and the
// next Save of the same name removes the remains.
func (d *Driver) Save(ctx context.Context, m vm.Machine, name string) error {
	err := d.save(ctx, m, name)
	if err != nil {
		return fmt.Errorf("save snapshot %q: %w", name, err)
	}
	return nil
}

func (d *Driver) save(ctx context.Context, m vm.Machine, name string) error {
	now, err := d.find(m)
	f, tag := filesOf(m), tagOf(name)
	switch {
	case err != nil:
		return err
	case now.state == vm.Absent:
		return vm.ErrAbsent
	case name == "" || len(name) > maxName:
		return fmt.Errorf("its name has %d bytes; choose one with 1 to %d", len(name), maxName)
	case exists(f.snapshot(tag)):
		return vm.ErrSnapshotExists
	}
	if err := os.MkdirAll(f.snapshots(), 0o700); err != nil {
		return err
	}
	record := snapshot{Name: name, Taken: time.Now()}
	if now.qemu != nil {
		record.Memory, record.Accelerator, record.Passt = true, now.started.Accelerator, now.started.Passt
		if record.Version, err = d.versionFor(ctx, now); err == nil {
			err = d.saveLive(ctx, now, tag)
		}
	} else {
		err = d.saveStopped(ctx, m, tag)
	}
	if err != nil {
		return err
	}
	record.Size = allocated(f.disk()) + allocated(f.vars())
	return writeRecord(f.snapshot(tag), record)
}

// saveStopped saves the disk, the firmware's variables and the TPM of a stopped VM.
func (d *Driver) saveStopped(ctx context.Context, m vm.Machine, tag string) (err error) {
	f := filesOf(m)
	if err := d.removeStopped(ctx, m, tag); err != nil { // removes the remains of an interrupted Save
		return err
	}
	defer func() {
		if err != nil {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
			defer cancel()
			err = errors.Join(err, d.removeStopped(after, m, tag))
		}
	}()
	for _, path := range []string{f.disk(), f.vars()} {
		if err := d.diskSnapshot(ctx, "-c", tag, path); err != nil {
			return err
		}
	}
	if !m.Firmware.TPM {
		return nil
	}
	return errors.Join(recoverTPM(m), copyTPM(f.tpm(), f.snapshotTPM(tag)))
}

// removeStopped removes a stopped VM's snapshot from the images, and the snapshot's TPM state. It
// skips the parts that do not exist.
func (d *Driver) removeStopped(ctx context.Context, m vm.Machine, tag string) error {
	if _, err := base(m); err != nil {
		return err
	}
	f := filesOf(m)
	for _, path := range []string{f.disk(), f.vars()} {
		has, err := d.hasTag(ctx, tag, path)
		if err == nil && has {
			err = d.diskSnapshot(ctx, "-d", tag, path)
		}
		if err != nil {
			return err
		}
	}
	return os.RemoveAll(f.snapshotTPM(tag))
}

// Restore returns a VM to the state of a snapshot.
func (d *Driver) Restore(ctx context.Context, m vm.Machine, name string) error {
	record, now, err := d.saved(m, name)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && record.Memory {
		err = d.restoreLive(ctx, m, now, record)
	} else if err == nil {
		err = d.restoreStopped(ctx, m, now, tagOf(name))
	}
	if err != nil {
		return fmt.Errorf("restore snapshot %q: %w", name, err)
	}
	return nil
}

// saved returns the record of a snapshot, and the state of its VM. The error is ErrNoSnapshot if
// there is no such snapshot.
func (d *Driver) saved(m vm.Machine, name string) (snapshot, found, error) {
	var record snapshot
	err := readRecord(filesOf(m).snapshot(tagOf(name)), &record)
	if errors.Is(err, fs.ErrNotExist) {
		err = vm.ErrNoSnapshot
	}
	if err != nil {
		return snapshot{}, found{}, err
	}
	now, err := d.find(m)
	if err == nil && now.state == vm.Absent {
		err = vm.ErrAbsent
	}
	return record, now, err
}

// restoreStopped ends the VM, and restores its disk, firmware variables and TPM. If it is
// interrupted, Restore can be repeated.
func (d *Driver) restoreStopped(ctx context.Context, m vm.Machine, now found, tag string) error {
	if _, err := base(m); err != nil {
		return err
	}
	if now.qemu != nil || now.state == vm.Crashed {
		if err := d.Kill(ctx, m); err != nil {
			return err
		}
	}
	f := filesOf(m)
	for i, path := range []string{f.disk(), f.vars()} {
		if err := d.diskSnapshot(ctx, "-a", tag, path); err != nil && i > 0 {
			return fmt.Errorf("%w; the disk is restored, the firmware variables are not: restore again", err)
		} else if err != nil {
			return err
		}
	}
	if !m.Firmware.TPM {
		return nil
	}
	if err := restoreTPM(m, f.snapshotTPM(tag)); err != nil {
		return fmt.Errorf("%w; the disk is restored, the TPM is not: restore again", err)
	}
	return nil
}

// Snapshots lists the snapshots, the oldest first.
func (d *Driver) Snapshots(_ context.Context, m vm.Machine) ([]vm.Snapshot, error) {
	f := filesOf(m)
	entries, err := os.ReadDir(f.snapshots())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var all []vm.Snapshot
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		var record snapshot
		if err := readRecord(filepath.Join(f.snapshots(), e.Name()), &record); err != nil {
			return nil, fmt.Errorf("list snapshots: %w", err)
		}
		all = append(all, vm.Snapshot{Name: record.Name, Taken: record.Taken, Memory: record.Memory, Size: record.Size})
	}
	slices.SortFunc(all, func(a, b vm.Snapshot) int {
		return cmp.Or(a.Taken.Compare(b.Taken), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// RemoveSnapshot removes a snapshot and frees its space. It removes the record first. If it is
// interrupted after that, the rest of the snapshot takes space until the next Save of the same
// name.
func (d *Driver) RemoveSnapshot(ctx context.Context, m vm.Machine, name string) error {
	_, now, err := d.saved(m, name)
	f, tag := filesOf(m), tagOf(name)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = os.Remove(f.snapshot(tag))
	}
	if err == nil && now.qemu != nil {
		err = errors.Join(d.removeLive(ctx, now, tag), os.RemoveAll(f.snapshotTPM(tag)))
	} else if err == nil {
		err = d.removeStopped(ctx, m, tag)
	}
	if err != nil {
		return fmt.Errorf("remove snapshot %q: %w", name, err)
	}
	return nil
}
