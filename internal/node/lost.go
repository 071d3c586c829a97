package node

import (
	"errors"

	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/ssh"
)

// Lost returns a channel that is closed when the present connection, or the agent at its other end,
// has ended. Without a connection, Lost returns a closed channel. After a Reconnect, call Lost
// again.
func (n *Node) Lost() <-chan struct{} {
	l, err := n.caller.current()
	if err != nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return l.agent.Done()
}

// IsHopeless reports whether reconnecting would fail the same way until a person has changed
// something: for example, the node's host key is not trusted, the node rejects the login, the user
// is no administrator, or the node does not let the agent run. Further tries may lock the user out.
func IsHopeless(err error) bool {
	var (
		rejected *ssh.AuthError
		other    *NotWindowsError
		blocked  *AgentBlockedError
		user     *NotAdministratorError
		foreign  *ForeignFolderError
		shell    *ShellError
	)
	return carrier.IsRefusal(err) || isDistrust(err) || errors.As(err, &rejected) || errors.As(err, &other) ||
		errors.As(err, &blocked) || errors.As(err, &user) || errors.As(err, &foreign) || errors.As(err, &shell)
}
