package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/ssh"
)

const (
	rebootPoll    = 2 * time.Second
	rebootAttempt = 30 * time.Second // bounds one question
	// A machine that boots may reject a login for a while; locked accounts are
	// the reason not to try for ever.
	rebootLogins = 5
)

// AwaitReboot waits until the node answers with another boot id than the one
// given, and leaves n connected to it. ctx should have a deadline; the error
// says what was seen last.
func (n *Node) AwaitReboot(ctx context.Context, oldBootID string) error {
	return awaitBoot(ctx, oldBootID, n.bootID)
}

// bootID asks the agent, over a new connection if the old one has broken.
func (n *Node) bootID(ctx context.Context) (string, error) {
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
	const what = "wait for the node to come back from its reboot"
	last := errors.New("nothing yet")
	logins := 0
	tick := time.NewTicker(rebootPoll)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, rebootAttempt)
		id, err := ask(attempt)
		cancel()
		var rejected *ssh.AuthError
		switch {
		case err == nil && id != old:
			return nil
		case err == nil:
			err = errors.New("it still runs, and has not gone down yet")
		case isDistrust(err):
			return fmt.Errorf("%s: %w", what, err)
		case errors.As(err, &rejected):
			if logins++; logins >= rebootLogins {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; seen last: %w", what, ctx.Err(), last)
		case <-tick.C:
		}
	}
}

// isDistrust: no waiting makes these better.
func isDistrust(err error) bool {
	var changed *ssh.HostKeyChangedError
	var unknown *ssh.HostKeyUnknownError
	var key *ssh.KeyFileError
	var secret *ssh.SecretError
	return errors.As(err, &changed) || errors.As(err, &unknown) || errors.As(err, &key) || errors.As(err, &secret)
}
