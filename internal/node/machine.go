package node

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// Lock makes the caller the only swdt that changes the node, until Unlock or the end of the session. The error is a
// *fault.LockedError if another one does; it prints holder to its user.
func (n *Node) Lock(ctx context.Context, holder string) error {
	_, err := n.Machine.Lock(ctx, &agentv1.LockRequest{Holder: holder})
	return err
}

// Unlock ends the effect of Lock.
func (n *Node) Unlock(ctx context.Context) error {
	_, err := n.Machine.Unlock(ctx, &agentv1.UnlockRequest{})
	return err
}

// BootID returns the boot id of the machine.
func (n *Node) BootID(ctx context.Context) (string, error) {
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	return facts.GetBootId(), err
}

// Reboot asks the machine to reboot. The connection may break before it has answered.
func (n *Node) Reboot(ctx context.Context, reason string) error {
	_, err := n.Machine.Reboot(ctx, &agentv1.RebootRequest{Reason: reason})
	return err
}

// IsLost reports whether an error of a call means that the connection is lost, so that no further call can succeed
// without a new connection.
func (n *Node) IsLost(err error) bool {
	var lost *LostError
	var unreachable *UnreachableError
	if errors.As(err, &lost) || errors.As(err, &unreachable) {
		return true
	}
	var coded interface{ GRPCStatus() *status.Status }
	return errors.As(err, &coded) && coded.GRPCStatus().Code() == codes.Unavailable
}
