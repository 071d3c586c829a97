package cli

import (
	"cmp"
	"net"

	"github.com/swdt-dev/swdt/internal/commandline"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/remedy"
	"github.com/swdt-dev/swdt/internal/ssh"
)

// noTerminal is the error for exec -t: the agent runs programs without a console
// of their own, so the way to a terminal is the node's SSH server itself.
func (a *app) noTerminal(args []string) error {
	documents, err := a.documents()
	if err != nil {
		return err
	}
	const why = "exec -t: swdt gives a program no terminal yet"
	if len(documents) != 1 {
		return usagef("%s; leave -t out, or choose one node with -n NAME", why)
	}
	return usagef("%s; leave -t out, or use the node's SSH server: `%s`", why, sshLine(a.shell(), documents[0], args))
}

// sshLine is the command of OpenSSH that opens a terminal on the node.
func sshLine(shell remedy.Shell, document config.Document, args []string) string {
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
