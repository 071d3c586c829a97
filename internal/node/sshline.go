package node

import (
	"cmp"
	"net"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// SSHLine returns the command of OpenSSH that opens a terminal on the node and runs
// args there.
func SSHLine(shell remedy.Shell, document config.Document, args []string) string {
	credentials := document.Node.Spec.Credentials
	line := []string{"ssh", "-t"}
	host, port, err := net.SplitHostPort(credentials.Hostname)
	if err != nil {
		host, port = credentials.Hostname, ""
	}
	if port != "" && port != "22" {
		line = append(line, "-p", port)
	}
	if credentials.PrivateKey != "" {
		line = append(line, "-i", document.Resolve(credentials.PrivateKey))
	}
	if credentials.ProxyJump != "" {
		line = append(line, "-J", credentials.ProxyJump)
	}
	line = append(line, cmp.Or(credentials.Username, ssh.DefaultUser)+"@"+host)
	return shell.Join(append(line, commandline.Join(args...)))
}
