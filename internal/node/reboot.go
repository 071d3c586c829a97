package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	rebootPoll    = 2 * time.Second
	rebootAttempt = 30 * time.Second // bounds one attempt to read the boot id
	// A machine that boots may reject a login for a while; one of a domain rejects even the right key until a domain
	// controller answers (Win32-OpenSSH's win32_groupaccess.c, ga_init). Logins with a password are bounded, because
	// rejected passwords can lock the account.
	rebootLogins = 5
)

// AwaitReboot waits until the node reports another boot id than oldBootID, and leaves n connected
// to the node. ctx should have a deadline. The error contains the last state that AwaitReboot saw.
func (n *Node) AwaitReboot(ctx context.Context, oldBootID string) error {
	return awaitBoot(ctx, oldBootID, n.nextBootID)
}

// nextBootID asks the agent for the boot id. If the old connection has broken, it makes a new
// one.
func (n *Node) nextBootID(ctx context.Context) (string, error) {
	reply, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err == nil {
		return reply.GetBootId(), nil
	}
	var lost *LostError
	if ctx.Err() == nil && !errors.As(err, &lost) {
		return "", err
	}
	if err := n.Reconnect(ctx); err != nil {
		return "", err
	}
	reply, err = n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	return reply.GetBootId(), err
}

func awaitBoot(ctx context.Context, old string, ask func(context.Context) (string, error)) error {
	const what = "the node to come back from its reboot"
	logins := 0
	return wait.Condition{
		Name:     what,
		Interval: rebootPoll,
		Look: func(ctx context.Context) error {
			attempt, cancel := context.WithTimeout(ctx, rebootAttempt)
			defer cancel()
			id, err := ask(attempt)
			var rejected *ssh.AuthError
			switch {
			case err == nil && id != old:
				return nil
			case err == nil:
				return errors.New("it is still running, and has not shut down yet")
			case errors.As(err, &rejected) && rejected.Passwords > 0:
				logins++
			}
			if isDistrust(err) || logins >= rebootLogins {
				return wait.Stop(fmt.Errorf("wait for %s: %w", what, err))
			}
			return err
		},
	}.Wait(ctx)
}

// isDistrust reports whether err has a cause that waiting cannot remove: a wrong host key,
// key file or secret.
func isDistrust(err error) bool {
	var changed *ssh.HostKeyChangedError
	var unknown *ssh.HostKeyUnknownError
	var key *ssh.KeyFileError
	var secret *ssh.SecretError
	return errors.As(err, &changed) || errors.As(err, &unknown) || errors.As(err, &key) || errors.As(err, &secret)
}
