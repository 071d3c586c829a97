package ssh

import (
	"context"
	"net"
	"strings"

	"github.com/Microsoft/go-winio"
)

// defaultAgent is the address of the SSH agent if the environment does not name one: the pipe of
// the Windows service ssh-agent.
const defaultAgent = `\\.\pipe\openssh-ssh-agent`

func dialAgent(ctx context.Context, socket string) (net.Conn, error) {
	if strings.HasPrefix(strings.ReplaceAll(socket, "/", `\`), `\\.\pipe\`) {
		return winio.DialPipeContext(ctx, socket)
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}
