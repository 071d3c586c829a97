package qemu

import (
	"context"
	"fmt"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// ChangeDisc takes the medium out of a CD drive, closes its file, and puts the present file of that name in. A call
// that was interrupted may be repeated.
func (d *Driver) ChangeDisc(ctx context.Context, m vm.Machine, drive int) error {
	now, err := d.running("change a CD", m)
	if err != nil {
		return err
	}
	if drive >= len(m.Discs) {
		return fmt.Errorf("change CD %d: the VM has %d CD drives", drive, len(m.Discs))
	}
	client, err := qmp.Dial(ctx, sockets{now.started.Sockets}.control())
	if err != nil {
		return fmt.Errorf("change a CD: %w", err)
	}
	defer client.Close()
	if err := changeDisc(ctx, client, discDrive(drive), disc(drive, m.Discs[drive])); err != nil {
		return fmt.Errorf("change a CD: %w", err)
	}
	return nil
}

func changeDisc(ctx context.Context, client *qmp.Client, drive string, medium node) error {
	name := medium["node-name"]
	run := func(command string, arguments map[string]any) error { return client.Run(ctx, command, arguments, nil) }
	// force: the guest may have locked the drive.
	if err := run("blockdev-open-tray", map[string]any{"id": drive, "force": true}); err != nil {
		return err
	}
	if err := run("blockdev-remove-medium", map[string]any{"id": drive}); err != nil {
		return err
	}
	open, err := hasNode(ctx, client, name)
	if err == nil && open {
		err = run("blockdev-del", map[string]any{"node-name": name})
	}
	if err != nil {
		return err
	}
	if err := run("blockdev-add", medium); err != nil {
		return err
	}
	if err := run("blockdev-insert-medium", map[string]any{"id": drive, "node-name": name}); err != nil {
		return err
	}
	return run("blockdev-close-tray", map[string]any{"id": drive})
}

// hasNode reports whether QEMU has a block node of a name.
func hasNode(ctx context.Context, client *qmp.Client, name any) (bool, error) {
	var nodes []struct {
		Name string `json:"node-name"`
	}
	if err := client.Run(ctx, "query-named-block-nodes", map[string]any{"flat": true}, &nodes); err != nil {
		return false, err
	}
	for _, node := range nodes {
		if node.Name == name {
			return true, nil
		}
	}
	return false, nil
}
