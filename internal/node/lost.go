package node

import (
	"errors"

	"github.com/swdt-dev/swdt/internal/ssh"
)

// Lost is closed when the present connection, or the agent at its other end,
// has ended. After a Reconnect there is another one.
func (n *Node) Lost() <-chan struct{} {
	l, err := n.caller.current()
	if err != nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return l.agent.Done()
}

// IsHopeless is whether connecting again would end the same way, until a person
// has changed something: the node is not trusted, or does not trust us, or does
// not let the agent run. Trying on may lock the user out.
func IsHopeless(err error) bool {
	var (
		rejected *ssh.AuthError
		other    *NotWindowsError
		blocked  *AgentBlockedError
		user     *NotAdministratorError
		foreign  *ForeignFolderError
	)
	return isDistrust(err) || errors.As(err, &rejected) || errors.As(err, &other) ||
		errors.As(err, &blocked) || errors.As(err, &user) || errors.As(err, &foreign)
}
