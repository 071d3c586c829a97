package criproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// restTime is between two attempts to reach a node that could not be reached: a
// client that tries again at once gets the last answer.
const restTime = time.Second

// Node is what a Keeper needs of a node.
type Node interface {
	DialPipe(ctx context.Context, path string) (net.Conn, error)
	Reconnect(ctx context.Context) error
}

// HopelessError: connecting to the node again would fail the same way until a
// person has changed something.
type HopelessError struct{ Err error }

func (e *HopelessError) Error() string { return e.Err.Error() }
func (e *HopelessError) Unwrap() error { return e.Err }

// Keeper dials a pipe of a node, and connects to the node again when that is what
// it takes.
type Keeper struct {
	Node     Node
	Pipe     string
	Reporter ui.Reporter

	turn    chan struct{} // held by who connects
	once    sync.Once
	mu      sync.Mutex
	made    int // connections made again
	failed  error
	retryAt time.Time
}

// Dial connects to the pipe. Of many that find the connection broken one makes it
// again, for all.
func (k *Keeper) Dial(ctx context.Context) (net.Conn, error) {
	before, _ := k.state()
	conn, err := k.Node.DialPipe(ctx, k.Pipe)
	var lost *node.LostError
	if errors.As(err, &lost) {
		if err := k.reconnect(ctx, before); err != nil {
			return nil, err
		}
		conn, err = k.Node.DialPipe(ctx, k.Pipe)
	}
	if errors.Is(err, host.ErrNotExist) {
		err = fmt.Errorf("%w; does containerd run?", err)
	}
	return conn, err
}

func (k *Keeper) state() (made int, failed error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Now().Before(k.retryAt) {
		failed = k.failed
	}
	return k.made, failed
}

// reconnect connects to the node, unless somebody else has since there were
// `before` connections.
func (k *Keeper) reconnect(ctx context.Context, before int) error {
	k.once.Do(func() { k.turn = make(chan struct{}, 1) })
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-k.turn }()
	made, failed := k.state()
	if made != before || failed != nil {
		return failed
	}
	k.Reporter.Warn("the connection is lost; connecting again")
	err := k.Node.Reconnect(ctx)
	if err == nil {
		k.Reporter.Info("connected again")
	}
	if node.IsHopeless(err) {
		err = &HopelessError{err}
	}
	k.note(ctx, err)
	return err
}

func (k *Keeper) note(ctx context.Context, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		k.made++
		k.failed = nil
	case ctx.Err() == nil:
		k.failed, k.retryAt = err, time.Now().Add(restTime)
	}
}
