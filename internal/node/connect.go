package node

import (
	"context"
	"errors"

	"github.com/swdt-dev/swdt/internal/config"
)

// Connect reaches the node by SSH and starts its agent, which is installed
// first if it is missing. The error is an *UnreachableError, unless ctx was
// cancelled.
func Connect(ctx context.Context, doc config.Document, opts Options) (*Node, error) {
	return nil, &UnreachableError{Node: doc.Node.Metadata.Name, Err: errors.New("not yet")}
}

// Close ends the agent and the connection.
func (n *Node) Close() error { return nil }

// Reconnect replaces the connection by a new one to the same agent; the clients
// of n work again afterwards.
func (n *Node) Reconnect(ctx context.Context) error { return errors.New("not yet") }

// AwaitReboot waits until the node answers with another boot id than the one
// given, and leaves n connected to it.
func (n *Node) AwaitReboot(ctx context.Context, oldBootID string) error { return errors.New("not yet") }

// Calls is the number of RPCs made so far, Connections that of SSH connections.
func (n *Node) Calls() int       { return 0 }
func (n *Node) Connections() int { return 0 }
