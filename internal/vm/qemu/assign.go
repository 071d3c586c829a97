package qemu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/dhcp"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Names of QEMU's objects between the guest's card and swdt, which exist while swdt answers the
// guest.
const (
	guestFrames, answerFrames = "lease-out", "lease-in"         // connections
	copyFilter, injectFilter  = "lease-copy", "lease-injection" // filters
)

// closedLimit bounds the wait for the end of a QEMU that has closed its control socket.
const closedLimit = 5 * time.Second

// guestFrames and answerFrames return the paths of the sockets for the guest's frames and for swdt's
// answers.
func (s sockets) guestFrames() string  { return s.in("out.sock") }
func (s sockets) answerFrames() string { return s.in("in.sock") }

// Assign answers the guest's requests for an address until the guest uses the address. Until then,
// QEMU copies the guest's frames to swdt, and gives swdt's answers to the guest alone. This needs
// no rights on your machine. Assign removes QEMU's filters and connections when it returns.
func (d *Driver) Assign(ctx context.Context, m vm.Machine, lease dhcp.Lease) (heard dhcp.Heard, err error) {
	now, err := d.running("give the guest its address", m)
	if err != nil {
		return heard, err
	}
	claim, err := claimLease(ctx, m)
	if err != nil {
		return heard, err
	}
	defer claim.Close()
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
		defer cancel()
		left := detachFilters(after, now)
		// A QEMU that ends closes its control sockets a moment before its process is gone.
		if left != nil && now.qemu.Ended(after, closedLimit) == nil || !now.qemu.Alive() {
			left, err = nil, vm.ErrStopped
		}
		err = errors.Join(err, left)
	}()
	if err := attachFilters(ctx, now); err != nil {
		return heard, err
	}
	place := sockets{now.started.Sockets}
	from, err := dialSocket(ctx, place.guestFrames())
	if err != nil {
		return heard, err
	}
	defer from.Close()
	to, err := dialSocket(ctx, place.answerFrames())
	if err != nil {
		return heard, err
	}
	defer to.Close()
	stop := context.AfterFunc(ctx, func() { _, _ = from.Close(), to.Close() })
	defer stop()
	heard, err = dhcp.Serve(ctx, lease, from, to)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return heard, err
}

// claimLease waits until no other swdt answers the guest. Closing the returned file lets another
// swdt answer.
func claimLease(ctx context.Context, m vm.Machine) (file interface{ Close() error }, err error) {
	err = wait.Condition{
		Name: "another swdt to give the guest its address", Interval: 100 * time.Millisecond,
		Look: func(context.Context) (err error) {
			file, err = localfile.Claim(filesOf(m).lease())
			return wait.StopIf(err != nil && !errors.Is(err, localfile.ErrClaimed), err)
		},
	}.Wait(ctx)
	return file, err
}

func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}

// attachFilters puts filters between the guest's card and its network.
func attachFilters(ctx context.Context, now found) error {
	if err := detachFilters(ctx, now); err != nil { // removes filters that a killed swdt has left
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	place := sockets{now.started.Sockets}
	client, err := qmp.Dial(bounded, place.look())
	if err != nil {
		return err
	}
	defer client.Close()
	for _, connection := range []struct{ name, path string }{
		{guestFrames, place.guestFrames()}, {answerFrames, place.answerFrames()},
	} {
		address := map[string]any{"type": "unix", "data": map[string]any{"path": connection.path}}
		err := client.Run(bounded, "chardev-add", map[string]any{"id": connection.name, "backend": map[string]any{
			"type": "socket", "data": map[string]any{"addr": address, "server": true, "wait": false},
		}}, nil)
		if err != nil {
			return err
		}
	}
	for _, filter := range []map[string]any{
		{"qom-type": "filter-mirror", "id": copyFilter, "queue": "rx", "outdev": guestFrames},
		{"qom-type": "filter-redirector", "id": injectFilter, "queue": "tx", "indev": answerFrames},
	} {
		filter["netdev"], filter["vnet_hdr_support"] = "net0", true
		if err := client.Run(bounded, "object-add", filter, nil); err != nil {
			return fmt.Errorf("%w; set the address in the guest instead", err)
		}
	}
	return nil
}

// detachFilters removes the filters and their connections, if there are any.
func detachFilters(ctx context.Context, now found) error {
	bounded, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	client, err := qmp.Dial(bounded, sockets{now.started.Sockets}.look())
	if err != nil {
		return err
	}
	defer client.Close()
	for _, removal := range []struct{ command, id string }{
		{"object-del", copyFilter}, {"object-del", injectFilter},
		{"chardev-remove", guestFrames}, {"chardev-remove", answerFrames},
	} {
		err := client.Run(bounded, removal.command, map[string]any{"id": removal.id}, nil)
		var refused *qmp.Error // QEMU refuses to remove an object that does not exist
		if err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return nil
}
