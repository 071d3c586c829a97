//go:build !windows

package ssh

import (
	"context"
	"net"
)

// defaultAgent is where the SSH agent listens if the environment does not say.
const defaultAgent = ""

func dialAgent(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}
