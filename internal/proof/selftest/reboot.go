package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// rebootLimit is how long a node may take to restart.
const rebootLimit = 15 * time.Minute

// settle is how long the transaction checks the new program. swdt must ask for the restart in that
// time.
const settle = 10 * time.Second

// versionAfterRestart is the version that serves after a restart in the middle of a push.
const versionAfterRestart = "version after the restart"

// tryGuardian restarts the node in the middle of a transaction. After the restart, the guardian or
// the next swdt must end the transaction, so that the service runs one of the two programs.
func tryGuardian(ctx context.Context, t *trial) error {
	if err := t.based(ctx, nil); err != nil {
		return err
	}
	facts, err := t.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return err
	}
	if err := t.rebootInTransaction(ctx, facts.GetBootId()); err != nil {
		return err
	}
	if err := t.awaitRestart(ctx); err != nil {
		return err
	}
	if err := push.Settle(ctx, t.node, push.Options{Holder: holder}, inner{t.reporter}); err != nil {
		return fmt.Errorf("end the transaction after the restart: %w", err)
	}
	if err := t.ready(ctx); err != nil {
		return err
	}
	if _, err := t.serving(ctx); err != nil {
		return err
	}
	return errors.Join(t.servesOneOf(ctx, first, second), t.nothingPending(ctx))
}

// awaitRestart waits until the node has restarted, if a claim has asked it to. A node that has not come back within
// the limit is waited for once only.
func (t *trial) awaitRestart(ctx context.Context) error {
	if t.restarting == "" {
		return nil
	}
	t.reporter.Step("waiting for the node's restart")
	bounded, cancel := context.WithTimeout(ctx, rebootLimit)
	defer cancel()
	err := t.node.AwaitReboot(bounded, t.restarting)
	if ctx.Err() == nil {
		t.restarting = ""
	}
	if err != nil {
		return fmt.Errorf("wait for the node's restart: %w", err)
	}
	return nil
}

// rebootInTransaction asks for a restart as soon as the transaction has stopped the service. bootID is that before
// the restart.
func (t *trial) rebootInTransaction(ctx context.Context, bootID string) error {
	old, err := t.program(first)
	if err != nil {
		return err
	}
	b, err := t.program(second)
	if err != nil {
		return err
	}
	staged := layout.Staged(programPath, b.sha256)
	if _, err := transfer.Upload(ctx, t.node, b.path, staged, inner{t.reporter}); err != nil {
		return err
	}
	stream, err := t.node.Swap.Run(ctx, &agentv1.SwapPlan{Holder: holder,
		Components: []*agentv1.SwapComponent{{Name: service, Destination: programPath, Staged: staged,
			Sha256: b.sha256, PreviousSha256: old.sha256, Service: service,
			Settle: durationpb.New(settle), Health: &agentv1.Health{}}}})
	if err != nil {
		return err
	}
	asked := false
	for {
		event, err := stream.Recv()
		switch {
		case err != nil && asked && !errors.Is(err, io.EOF):
			return nil // the restart has cut the connection
		case err != nil:
			return fmt.Errorf("follow the transaction: %w", err)
		case event.GetOutcome() != nil && asked:
			return nil
		case event.GetOutcome() != nil:
			return fmt.Errorf("the transaction ended as %s before the restart",
				word.Of(event.GetOutcome().GetResult()))
		case !asked && event.GetState() == agentv1.SwapState_SWAP_STATE_CHECKING:
			asked = true
			_, err := t.node.Machine.Reboot(ctx, &agentv1.RebootRequest{Reason: "swdt selftest"})
			var lost *node.LostError
			if err == nil || errors.As(err, &lost) || ctx.Err() != nil {
				t.restarting = bootID
			}
			if err != nil {
				return fmt.Errorf("restart the node: %w", err)
			}
		}
	}
}

func (t *trial) servesOneOf(ctx context.Context, versions ...string) error {
	var failures []error
	for _, version := range versions {
		err := t.serves(ctx, version)
		if err == nil {
			t.answer(versionAfterRestart, version)
			return nil
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// nothingPending returns an error if a transaction is still in flight.
func (t *trial) nothingPending(ctx context.Context) error {
	reply, err := t.node.Swap.Inspect(ctx, &agentv1.InspectRequest{})
	if err != nil {
		return err
	}
	for _, t := range reply.GetTransactions() {
		return fmt.Errorf("the transaction %s is still %s", t.GetId(), word.Of(t.GetState()))
	}
	_, err = t.node.Files.Stat(ctx, &agentv1.StatRequest{Path: layout.Undo(programPath)})
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	return errors.Join(errors.New("the transaction has left its old program"), err)
}
