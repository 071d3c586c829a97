package windows

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func (network) Reach(ctx context.Context, address string, timeout time.Duration) (platform.Reach, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return platform.Reach{}, fmt.Errorf("connect to %q: not an address with a port: %w", address, err)
	}
	begun := time.Now()
	conn, err := (&net.Dialer{Timeout: timeout, KeepAlive: -1}).DialContext(ctx, "tcp", address)
	reach := platform.Reach{Took: time.Since(begun)}
	if err == nil {
		defer conn.Close()
		reach.Outcome, reach.Address = platform.Reached, conn.RemoteAddr().String()
		if local, ok := conn.LocalAddr().(*net.TCPAddr); ok {
			reach.Source = local.AddrPort().Addr().Unmap().String()
		}
		return reach, nil
	}
	if ctx.Err() != nil {
		return platform.Reach{}, fmt.Errorf("connect to %s: %w", address, ctx.Err())
	}
	reach.Outcome, reach.Detail = outcomeOf(err), err.Error()
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Addr != nil {
		reach.Address = op.Addr.String()
	}
	return reach, nil
}

func outcomeOf(err error) platform.ReachOutcome {
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		switch {
		case dns.IsNotFound:
			return platform.NameNotFound
		case dns.IsTimeout:
			return platform.TimedOut
		}
		return platform.ReachFailed
	}
	switch code(err) {
	case windows.WSAECONNREFUSED, windows.ERROR_CONNECTION_REFUSED:
		return platform.Refused
	case windows.WSAETIMEDOUT, windows.ERROR_SEM_TIMEOUT:
		return platform.TimedOut
	case windows.WSAENETUNREACH, windows.WSAEHOSTUNREACH, windows.ERROR_NETWORK_UNREACHABLE,
		windows.ERROR_HOST_UNREACHABLE:
		return platform.NoRoute
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return platform.TimedOut
	}
	return platform.ReachFailed
}

func (network) Resolve(ctx context.Context, name string) ([]string, error) {
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) && dns.IsNotFound {
		return nil, fmt.Errorf("resolve %s: %w", name, fault.ErrNotExist)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return addresses, failed(err, "resolve %s", name)
}
