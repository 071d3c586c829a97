//go:build !linux

package netprobe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

var errNoSCTP = fmt.Errorf("this system has no SCTP: %w", errors.ErrUnsupported)

func listenSCTP(netip.AddrPort) (net.Listener, error) { return nil, errNoSCTP }

func dialSCTP(context.Context, netip.AddrPort, netip.AddrPort) (net.Conn, error) {
	return nil, errNoSCTP
}
