package qemu_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/deadline"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/dhcp"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// An assignment that ends without success leaves nothing in QEMU, and neither the remains of a swdt
// that was killed nor another assignment hinder the next one.
func TestAssignLeavesNothing(t *testing.T) {
	d := driver(t)
	m := record(t, d, "assigned")
	lease := dhcp.Lease{
		MAC: net.HardwareAddr{0x52, 0x54, 0, 0, 0, 1}, Address: netip.MustParsePrefix("172.18.255.254/16"),
		Gateway: netip.MustParseAddr("172.18.0.1"),
	}
	check(t, d.Create(t.Context(), m))
	if _, err := d.Assign(t.Context(), m, lease); !errors.Is(err, vm.ErrStopped) {
		t.Errorf("to a stopped VM: %v", err)
	}
	check(t, d.Start(t.Context(), m))
	look := filepath.Join(m.Folder, "run", "look.sock")
	before := objects(t, look)
	client, err := qmp.Dial(t.Context(), look)
	check(t, err)
	check(t, client.Run(t.Context(), "object-add", map[string]any{
		"qom-type": "filter-buffer", "id": "lease-copy", "netdev": "net0", "interval": 1000,
	}, nil))
	check(t, client.Close())
	ended := make(chan error, 2)
	ctx, pass := deadline.Context(t.Context())
	for range cap(ended) {
		go func() {
			_, err := d.Assign(ctx, m, lease)
			ended <- err
		}()
	}
	const ofAssign = 4 // two filters and two connections
	eventually(t, "one of them answers", func() bool { return objects(t, look) == before+ofAssign })
	pass()
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a guest that never asks: %v", err)
		}
	}
	if now := objects(t, look); now != before {
		t.Errorf("QEMU has %d objects, had %d", now, before)
	}
	for _, name := range []string{"out.sock", "in.sock"} {
		if _, err := os.Lstat(filepath.Join(m.Folder, "run", name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	answered := make(chan error, 1)
	go func() {
		_, err := d.Assign(t.Context(), m, lease)
		answered <- err
	}()
	check(t, d.Kill(t.Context(), m))
	if err := <-answered; !errors.Is(err, vm.ErrStopped) {
		t.Errorf("after the VM was killed: %v", err)
	}
}

// objects counts QEMU's user-made objects and connections.
func objects(t *testing.T, socket string) (n int) {
	t.Helper()
	client, err := qmp.Dial(t.Context(), socket)
	check(t, err)
	defer client.Close()
	var found, connections []struct{}
	check(t, client.Run(t.Context(), "qom-list", map[string]any{"path": "/objects"}, &found))
	check(t, client.Run(t.Context(), "query-chardev", nil, &connections))
	return len(found) + len(connections)
}
