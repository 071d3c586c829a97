package windows

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func (network) Connect(ctx context.Context, address netip.AddrPort) (platform.Connection, error) {
	own, err := isOwn(address.Addr())
	if err != nil {
		return nil, failed(err, "list this machine's addresses")
	}
	if !own {
		return nil, fmt.Errorf("connect to %s: %w: it is not an address of this machine", address, fault.ErrPermission)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address.String())
	if err != nil && outcomeOf(err) == platform.Refused {
		return nil, fmt.Errorf("connect to %s: %w", address, fault.ErrNotExist)
	}
	if err != nil {
		return nil, failed(err, "connect to %s", address)
	}
	return conn.(*net.TCPConn), nil
}

// isOwn reports whether address is a loopback address or an address of one of this machine's
// interfaces.
func isOwn(address netip.Addr) (bool, error) {
	address = address.Unmap()
	if address.IsLoopback() {
		return true, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, one := range all {
		if prefix, ok := one.(*net.IPNet); ok && prefix.IP.Equal(address.AsSlice()) {
			return true, nil
		}
	}
	return false, nil
}
