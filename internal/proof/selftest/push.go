package selftest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// push pushes a version of the throw-away service, and checks that the node runs it.
func (t *trial) push(ctx context.Context, version string, depot *transfer.Depot) (*push.ComponentResult, error) {
	b, err := t.program(version)
	if err != nil {
		return nil, err
	}
	result, err := push.Push(ctx, t.node, t.pushed(b), push.Options{Locked: true, Holder: holder,
		Depot: depot}, inner{t.reporter})
	if err != nil {
		return nil, err
	}
	if len(result.Components) != 1 {
		return nil, fmt.Errorf("the push has the result %s and %d components", result.Result, len(result.Components))
	}
	return result.Components[0], t.serves(ctx, version)
}

// serves checks that the service runs a version of the program.
func (t *trial) serves(ctx context.Context, version string) error {
	b, err := t.program(version)
	if err != nil {
		return err
	}
	hash, err := t.node.Files.Hash(ctx, &agentv1.HashRequest{Path: programPath})
	if err != nil {
		return err
	}
	if err := expect("the SHA-256 of the service's program", hash.GetSha256(), b.sha256); err != nil {
		return err
	}
	reply, err := t.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: service})
	if err != nil {
		return err
	}
	return t.runs(ctx, reply.GetStatus())
}

// based makes the service run the first version.
func (t *trial) based(ctx context.Context, depot *transfer.Depot) error {
	if _, err := t.serving(ctx); err != nil {
		return err
	}
	_, err := t.push(ctx, first, depot)
	return err
}

// tryPush replaces the program of the running service, and puts the old one back.
func tryPush(ctx context.Context, t *trial) error {
	if err := t.based(ctx, nil); err != nil {
		return err
	}
	result, err := t.push(ctx, second, nil)
	if err != nil {
		return err
	}
	if err := expect("the action of a push", result.Action, push.ActionReplaced); err != nil {
		return err
	}
	if result, err = t.push(ctx, second, nil); err != nil {
		return err
	}
	return expect("the action of a second push of the same program", result.Action, push.ActionUnchanged)
}

// tryRollback rolls the service back, and back again.
func tryRollback(ctx context.Context, t *trial) error {
	if err := t.based(ctx, nil); err != nil {
		return err
	}
	if _, err := t.push(ctx, second, nil); err != nil {
		return err
	}
	b, err := t.program(second)
	if err != nil {
		return err
	}
	for _, version := range []string{first, second} {
		_, err := push.Rollback(ctx, t.node, t.pushed(b), []string{service},
			push.Options{Locked: true, Holder: holder}, inner{t.reporter})
		if err != nil {
			return err
		}
		if err := t.serves(ctx, version); err != nil {
			return fmt.Errorf("after the rollback to %s: %w", version, err)
		}
	}
	return nil
}

// tryBroken pushes a program that ends as soon as it runs.
func tryBroken(ctx context.Context, t *trial) error {
	if err := t.based(ctx, nil); err != nil {
		return err
	}
	_, err := t.push(ctx, broken, nil)
	var back *push.RolledBackError
	if !errors.As(err, &back) {
		return errors.Join(errors.New("the push of a program that ends at once was not rolled back"), err)
	}
	for _, c := range back.Outcome.GetComponents() {
		t.answer("a log line of the broken program is reported", len(c.GetLogLines()) > 0)
	}
	return t.serves(ctx, first)
}

// slowLink makes swdt take the link for a slow one, on which it sends differences.
func (t *trial) slowLink() {
	t.node.Speed.Note(node.Reading{RoundTrip: 50 * time.Millisecond, BytesPerSecond: 200 << 10, At: time.Now()})
}

// tryDelta pushes a program as the difference to the program that the node has.
func tryDelta(ctx context.Context, t *trial) error {
	store, err := blobs.Open(filepath.Join(t.folder, "store"), 0)
	if err != nil {
		return err
	}
	depot := transfer.NewDepot(store)
	if err := t.based(ctx, depot); err != nil {
		return err
	}
	t.slowLink()
	result, err := t.push(ctx, third, depot)
	if err != nil {
		return err
	}
	if result.Transfer == nil {
		return errors.New("the push has sent nothing")
	}
	sent := *result.Transfer
	if sent.SizeBytes < smallestDelta {
		return impossible("the program has only %d bytes, of which swdt sends no difference", sent.SizeBytes)
	}
	if err := expect("the method of sending", sent.Method, transfer.MethodDelta); err != nil {
		return err
	}
	if sent.SentBytes > sent.SizeBytes/4 {
		return fmt.Errorf("the difference of one note took %d bytes of %d", sent.SentBytes, sent.SizeBytes)
	}
	_, err = t.node.Files.Stat(ctx, &agentv1.StatRequest{Path: layout.Previous(programPath)})
	if errors.Is(err, fault.ErrNotExist) {
		return errors.New("the node did not keep the replaced program")
	}
	return err
}

// smallestDelta is a size in bytes below which swdt always sends whole files.
const smallestDelta = 1 << 20
