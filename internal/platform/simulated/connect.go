package simulated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Connect reaches the listeners of the computer that runs the simulation, since the machine shares
// its loopback. The machine has no other addresses.
func (v networkView) Connect(ctx context.Context, address netip.AddrPort) (conn platform.Connection, err error) {
	err = v.p.operate(Operation{Kind: OpConnect, Target: address.String()}, func(Verdict) error {
		conn, err = v.connect(ctx, address)
		return err
	})
	if err != nil && conn != nil {
		_ = conn.Close()
		conn = nil
	}
	return conn, err
}

func (v networkView) connect(ctx context.Context, address netip.AddrPort) (platform.Connection, error) {
	if !address.Addr().Unmap().IsLoopback() {
		return nil, fmt.Errorf("connect to %s: %w: it is not an address of this machine", address, fault.ErrPermission)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address.String())
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("connect to %s: %w", address, fault.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	tcp := conn.(*net.TCPConn)
	return &connection{TCPConn: tcp, stop: context.AfterFunc(v.p.ctx, func() { _ = tcp.Close() })}, nil
}

// connection closes when the process that made it ends.
type connection struct {
	*net.TCPConn
	stop func() bool
}

func (c *connection) Close() error {
	c.stop()
	return c.TCPConn.Close()
}
