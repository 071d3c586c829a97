package selftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// tryCut kills swdt's own agent in the middle of a push. The push must find its way back to the node,
// and report how the guardian ended it.
func tryCut(ctx context.Context, t *trial) error {
	if err := t.based(ctx, nil); err != nil {
		return err
	}
	agent, err := t.ownAgent(ctx)
	if err != nil {
		return err
	}
	b, err := t.program(second)
	if err != nil {
		return err
	}
	cut := make(chan error, 1)
	options := push.Options{Locked: true, Holder: holder, Commit: func() bool {
		go func() { cut <- t.cutTransaction(ctx, agent) }()
		return true
	}}
	result, err := push.Push(ctx, t.node, t.pushed(b), options, inner{t.reporter})
	if err != nil {
		return fmt.Errorf("the push whose agent was killed: %w", err)
	}
	if err := <-cut; err != nil {
		return err
	}
	if err := expect("the result of the push whose agent was killed", result.Result, push.Changed); err != nil {
		return err
	}
	return t.serves(ctx, second)
}

// cutTransaction kills the agent as soon as the node works on a transaction.
func (t *trial) cutTransaction(ctx context.Context, agent uint32) error {
	err := wait.Condition{
		Name: "the transaction to begin", Interval: 10 * time.Millisecond, Limit: startLimit,
		Look: func(ctx context.Context) error {
			reply, err := t.node.Swap.Inspect(ctx, &agentv1.InspectRequest{})
			if err != nil {
				return wait.Stop(err)
			}
			for _, t := range reply.GetTransactions() {
				state := t.GetState()
				if t.GetOutcome() == nil && state >= agentv1.SwapState_SWAP_STATE_STOPPING &&
					state != agentv1.SwapState_SWAP_STATE_WAITING {
					return nil
				}
			}
			return errors.New("no transaction is in flight")
		},
	}.Wait(ctx)
	if err != nil {
		return fmt.Errorf("cut the connection: %w", err)
	}
	_, err = t.node.Processes.Kill(ctx, &agentv1.KillProcessRequest{Pid: agent})
	var lost *node.LostError
	if err == nil || errors.As(err, &lost) { // the killed agent may not have answered any more
		return nil
	}
	return fmt.Errorf("kill the agent: %w", err)
}

// ownAgent returns the process id of the agent that answers: the parent of a program that it runs.
func (t *trial) ownAgent(ctx context.Context) (uint32, error) {
	s, err := t.sleep(ctx, programPath)
	if err != nil {
		return 0, err
	}
	parent := s.process.GetParentPid()
	if err := s.wake(ctx); err != nil {
		return 0, err
	}
	if parent == 0 {
		return 0, impossible("the node does not report parents of processes")
	}
	return parent, nil
}

// tryLost kills the agent, and connects again.
func tryLost(ctx context.Context, t *trial) error {
	if err := t.installed(ctx); err != nil {
		return err
	}
	agent, err := t.ownAgent(ctx)
	if err != nil {
		return err
	}
	_, err = t.node.Processes.Kill(ctx, &agentv1.KillProcessRequest{Pid: agent})
	if err == nil || errors.Is(err, fault.ErrPermission) {
		_, err = t.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	}
	if err == nil {
		return errors.New("the agent still answers after its process was killed")
	}
	if err := t.node.Reconnect(ctx); err != nil {
		return fmt.Errorf("connect again: %w", err)
	}
	return t.ready(ctx)
}
