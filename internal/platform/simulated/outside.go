package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/swdt-dev/swdt/internal/platform"
)

// connect opens a TCP connection to host:port. It resolves the name as the machine does. If
// SetReach has set an outcome for the address, the attempt to connect has this outcome. On loopback,
// and with Options.RealNetwork, the connection is real, since the API server for the machine's
// programs listens on the computer that runs the simulation. The connection ends with the process.
func (p *process) connect(ctx context.Context, address string) (net.Conn, error) {
	if err := p.checkContext(ctx); err != nil {
		return nil, err
	}
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	addresses, err := p.m.lookup(name)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	var failed error
	for _, one := range addresses {
		conn, err := p.dialTCP(ctx, one, port)
		if err == nil {
			return endsWith(conn, p), nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("connect to %s: %w", address, failed)
}

func (p *process) dialTCP(ctx context.Context, address, port string) (net.Conn, error) {
	outcome := p.m.outcome(address, port)
	if outcome == "" && p.m.hasRealNetwork(address) {
		return p.m.options.Dial(ctx, "tcp", net.JoinHostPort(address, port))
	}
	switch cmp.Or(outcome, platform.NoRoute) {
	case platform.Refused:
		return nil, syscall.ECONNREFUSED
	case platform.TimedOut:
		return nil, os.ErrDeadlineExceeded
	}
	return nil, syscall.ENETUNREACH
}
