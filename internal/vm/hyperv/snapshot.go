package hyperv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/swdt-dev/swdt/internal/vm"
)

// maxName bounds the name of a snapshot in characters.
const maxName = 100

// checkpoint is a snapshot as Hyper-V reports it.
type checkpoint struct {
	ID      string `json:"Id"`
	Name    string
	Created string  `json:"CreationTime"` // RFC 3339
	Size    float64 `json:"SizeOfSystemFiles"`
}

// checkpoints lists the checkpoints of a VM, the oldest first: once as Hyper-V reports them, and
// once as snapshots, in the same order.
func (d *Driver) checkpoints(ctx context.Context, now machine, kept record) ([]checkpoint, []vm.Snapshot, error) {
	var found struct {
		Checkpoints list[checkpoint]
	}
	err := d.ask(ctx, "list the checkpoints", "checkpoints", now.argument(), &found)
	if err != nil {
		return nil, nil, err
	}
	type pair struct {
		checkpoint checkpoint
		snapshot   vm.Snapshot
	}
	var pairs []pair
	for _, one := range found.Checkpoints {
		taken, err := time.Parse(time.RFC3339Nano, one.Created)
		if err == nil {
			err = checkID(one.ID)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("list the checkpoints: %.60q: %w", one.Name, err)
		}
		pairs = append(pairs, pair{one, vm.Snapshot{
			Name: one.Name, Taken: taken, Memory: slices.Contains(kept.Memory, one.ID), Size: int64(max(one.Size, 0)),
		}})
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(a.snapshot.Taken.Compare(b.snapshot.Taken), strings.Compare(a.snapshot.Name, b.snapshot.Name))
	})
	var all []checkpoint
	var snapshots []vm.Snapshot
	for _, p := range pairs {
		all, snapshots = append(all, p.checkpoint), append(snapshots, p.snapshot)
	}
	return all, snapshots, nil
}

// saved returns a VM, its record, and its checkpoint with this name. The error is ErrNoSnapshot if
// there is no such checkpoint.
func (d *Driver) saved(ctx context.Context, m vm.Machine, name string) (machine, record, checkpoint, error) {
	now, kept, err := d.find(ctx, m)
	if errors.Is(err, vm.ErrAbsent) {
		err = fmt.Errorf("%w: %w", vm.ErrNoSnapshot, err)
	}
	if err != nil {
		return now, kept, checkpoint{}, err
	}
	all, _, err := d.checkpoints(ctx, now, kept)
	if err != nil {
		return now, kept, checkpoint{}, err
	}
	for _, one := range all {
		if one.Name == name {
			return now, kept, one, nil
		}
	}
	return now, kept, checkpoint{}, vm.ErrNoSnapshot
}

// Save makes a checkpoint. If the VM runs, the checkpoint has the VM's memory.
func (d *Driver) Save(ctx context.Context, m vm.Machine, name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("save snapshot %.60q: its name has %d characters; choose one with 1 to %d", name, n, maxName)
	}
	now, kept, _, err := d.saved(ctx, m, name)
	switch {
	case err == nil:
		return fmt.Errorf("save snapshot %q: %w", name, vm.ErrSnapshotExists)
	case errors.Is(err, vm.ErrAbsent):
		return fmt.Errorf("save snapshot %q: %w", name, vm.ErrAbsent)
	case !errors.Is(err, vm.ErrNoSnapshot):
		return err
	}
	var made struct{ Checkpoints list[checkpoint] }
	err = d.ask(ctx, fmt.Sprintf("save snapshot %q", name), "save", arguments{"id": now.ID, "name": name}, &made)
	if err == nil && len(made.Checkpoints) != 1 {
		err = fmt.Errorf("save snapshot %q: Hyper-V reports %d checkpoints", name, len(made.Checkpoints))
	}
	if err != nil || !now.executes() {
		return err
	}
	kept.Memory = append(kept.Memory, made.Checkpoints[0].ID)
	return writeRecord(m, kept)
}

// Restore applies a checkpoint. If the checkpoint has memory, Hyper-V leaves the VM in the state
// Saved, and Restore starts the VM.
func (d *Driver) Restore(ctx context.Context, m vm.Machine, name string) error {
	action := fmt.Sprintf("restore snapshot %q", name)
	now, kept, one, err := d.saved(ctx, m, name)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	if now.executes() {
		if err := d.turnOff(ctx, now); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
	}
	if err := d.do(ctx, action, "restore", arguments{"checkpoint": one.ID}); err != nil {
		return err
	}
	if !slices.Contains(kept.Memory, one.ID) {
		return nil
	}
	return d.start(ctx, m, now, kept)
}

// Snapshots lists the checkpoints, the oldest first, including those that swdt has not made.
func (d *Driver) Snapshots(ctx context.Context, m vm.Machine) ([]vm.Snapshot, error) {
	now, kept, err := d.find(ctx, m)
	if errors.Is(err, vm.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, all, err := d.checkpoints(ctx, now, kept)
	return all, err
}

// RemoveSnapshot removes a checkpoint. Hyper-V merges the checkpoint's disk in the background.
func (d *Driver) RemoveSnapshot(ctx context.Context, m vm.Machine, name string) error {
	action := fmt.Sprintf("remove snapshot %q", name)
	_, kept, one, err := d.saved(ctx, m, name)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	err = d.do(ctx, action, "removeCheckpoint", arguments{"checkpoint": one.ID})
	if err != nil {
		return err
	}
	kept.Memory = slices.DeleteFunc(kept.Memory, func(id string) bool { return id == one.ID })
	return writeRecord(m, kept)
}
