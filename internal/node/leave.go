package node

import (
	"context"
	"time"
)

// leaveTimeout bounds an orderly end of the connection.
const leaveTimeout = 500 * time.Millisecond

// Leave closes the connection, but does not wait long for a node that no longer
// answers: it returns after at most half a second, or when ctx has ended. A pod that leads
// to the node is removed then, which can take some seconds. Leave is for the end of a
// command, when an error of closing no longer matters.
func (n *Node) Leave(ctx context.Context) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = n.Close()
	}()
	timer := time.NewTimer(leaveTimeout)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	case <-ctx.Done():
	}
	if n.way != nil {
		n.way.Leave(ctx) // takes longer only if the way has made something, such as a pod
	}
}
