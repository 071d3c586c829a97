//go:build !windows

package ssh

import (
	"context"
	"net"
)

// defaultAgent is the address of the SSH agent if the environment does not name one: on this system
// there is no such address.
const defaultAgent = ""

func dialAgent(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}
