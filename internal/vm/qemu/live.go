package qemu

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// nodes returns the names of the block devices that a live snapshot has. The first device also
// takes the memory.
func nodes() []string { return []string{"disk0", "vars"} }

// dialForJobs connects to a running VM, and waits for the end of the jobs that a killed swdt has
// left. The caller holds the VM's lock, so no other swdt waits for these jobs.
func dialForJobs(ctx context.Context, now found) (*qmp.Client, error) {
	client, err := qmp.Dial(ctx, sockets{now.started.Sockets}.control())
	if err != nil {
		return nil, err
	}
	if err := client.EndJobs(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// saveLive saves a running VM with its memory.
func (d *Driver) saveLive(ctx context.Context, now found, tag string) error {
	client, err := dialForJobs(ctx, now)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := deleteJob(ctx, client, tag); err != nil { // removes the remains of an interrupted Save
		return err
	}
	err = client.RunJob(ctx, "snapshot-save", "save-"+tag,
		map[string]any{"tag": tag, "vmstate": nodes()[0], "devices": nodes()})
	if err != nil && !errors.Is(err, qmp.ErrClosed) {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
		defer cancel()
		err = errors.Join(err, deleteJob(after, client, tag))
	}
	return err
}

// restoreLive restores a snapshot with memory and lets the VM run. Only the version of QEMU that
// has saved the memory can load it, so restoreLive refuses another version before it changes
// anything. If the VM runs with another accelerator than the snapshot's, restoreLive starts the VM
// again with the snapshot's accelerator.
func (d *Driver) restoreLive(ctx context.Context, m vm.Machine, now found, record snapshot) error {
	version, err := d.versionFor(ctx, now)
	if err != nil {
		return err
	}
	if version != record.Version {
		return fmt.Errorf("QEMU %s has saved the memory, and QEMU %s cannot load it: %w; "+
			"install that version, or remove the snapshot", record.Version, version, vm.ErrUnsupported)
	}
	stays := now.qemu != nil && now.started.Accelerator == record.Accelerator
	passt := m.Network.Outbound() // of the QEMU that will load the memory
	if stays {
		passt = now.started.Passt
	}
	if passt != record.Passt {
		return fmt.Errorf("the memory was saved with a network card on %s, and the VM's is on %s: %w; "+
			"remove the snapshot", networkOf(record.Passt), networkOf(passt), vm.ErrUnsupported)
	}
	tag := tagOf(record.Name)
	if stays {
		client, err := dialForJobs(ctx, now)
		if err != nil {
			return err
		}
		defer client.Close()
		if err := loadJob(ctx, client, tag); err != nil {
			return fmt.Errorf("%w; %s", err, afterFailedLoad(ctx, client, err))
		}
		return client.Run(ctx, "cont", nil, nil)
	}
	if now.qemu != nil {
		if err := d.Kill(ctx, m); err != nil {
			return err
		}
	}
	return d.start(ctx, m, record.Accelerator, func(ctx context.Context, client *qmp.Client) error {
		return loadJob(ctx, client, tag)
	})
}

// versionFor returns the version of the QEMU that runs a VM, or else of the one that would.
func (d *Driver) versionFor(ctx context.Context, now found) (string, error) {
	if now.qemu == nil {
		installed, err := d.version(ctx)
		return installed.String(), err
	}
	client, err := qmp.Dial(ctx, sockets{now.started.Sockets}.look())
	if err != nil {
		return "", err
	}
	defer client.Close()
	return client.Version.String(), nil
}

// networkOf names what a network card leads to.
func networkOf(passt bool) string {
	if passt {
		return "passt"
	}
	return "a network of QEMU's"
}

// afterFailedLoad describes in words in which state a failed restore has left a running VM. QEMU
// pauses the VM before it loads the snapshot, and continues the VM only if the load succeeds.
func afterFailedLoad(ctx context.Context, client *qmp.Client, failure error) string {
	var refused *qmp.Error
	if errors.As(failure, &refused) && refused.Command == loadCommand && !refused.OfJob() {
		return "the VM was not changed"
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	state, err := runState(after, client)
	switch {
	case err != nil:
		return "`swdt vm status` shows whether the VM runs"
	case pauses(state) == "":
		return "the VM runs"
	}
	return "the VM is paused, maybe between two states: restore it again, or end it with `swdt vm stop --force`"
}

// loadCommand is the command of QEMU that loads a snapshot.
const loadCommand = "snapshot-load"

func loadJob(ctx context.Context, client *qmp.Client, tag string) error {
	return client.RunJob(ctx, loadCommand, "load-"+tag,
		map[string]any{"tag": tag, "vmstate": nodes()[0], "devices": nodes()})
}

// removeLive removes a snapshot of a running VM.
func (d *Driver) removeLive(ctx context.Context, now found, tag string) error {
	client, err := dialForJobs(ctx, now)
	if err != nil {
		return err
	}
	defer client.Close()
	return deleteJob(ctx, client, tag)
}

// deleteJob removes a snapshot, if there is one.
func deleteJob(ctx context.Context, client *qmp.Client, tag string) error {
	return client.RunJob(ctx, "snapshot-delete", "delete-"+tag, map[string]any{"tag": tag, "devices": nodes()})
}
