package windows

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/host"
)

func (network) Reach(ctx context.Context, address string, timeout time.Duration) (host.Reach, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return host.Reach{}, fmt.Errorf("connect to %q: not an address with a port: %w", address, err)
	}
	begun := time.Now()
	conn, err := (&net.Dialer{Timeout: timeout, KeepAlive: -1}).DialContext(ctx, "tcp", address)
	reach := host.Reach{Took: time.Since(begun)}
	if err == nil {
		defer conn.Close()
		reach.Outcome, reach.Address = host.Reached, conn.RemoteAddr().String()
		return reach, nil
	}
	if ctx.Err() != nil {
		return host.Reach{}, fmt.Errorf("connect to %s: %w", address, ctx.Err())
	}
	reach.Outcome, reach.Detail = outcomeOf(err), err.Error()
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Addr != nil {
		reach.Address = op.Addr.String()
	}
	return reach, nil
}

func outcomeOf(err error) host.ReachOutcome {
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		switch {
		case dns.IsNotFound:
			return host.NameNotFound
		case dns.IsTimeout:
			return host.TimedOut
		}
		return host.ReachFailed
	}
	switch code(err) {
	case windows.WSAECONNREFUSED, windows.ERROR_CONNECTION_REFUSED:
		return host.Refused
	case windows.WSAETIMEDOUT, windows.ERROR_SEM_TIMEOUT:
		return host.TimedOut
	case windows.WSAENETUNREACH, windows.WSAEHOSTUNREACH, windows.ERROR_NETWORK_UNREACHABLE, windows.ERROR_HOST_UNREACHABLE:
		return host.NoRoute
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return host.TimedOut
	}
	return host.ReachFailed
}

func (network) Resolve(ctx context.Context, name string) ([]string, error) {
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) && dns.IsNotFound {
		return nil, fmt.Errorf("resolve %s: %w", name, host.ErrNotExist)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return addresses, failed(err, "resolve %s", name)
}
