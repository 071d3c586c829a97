package criproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// restTime is the shortest time between two attempts to reach an unreachable node. A client that
// tries again sooner gets the error of the last attempt.
const restTime = time.Second

// Node is the part of a node that a Keeper uses.
type Node interface {
	DialPipe(ctx context.Context, path string) (net.Conn, error)
	DialPort(ctx context.Context, address netip.AddrPort) (*node.PortConn, error)
	Reconnect(ctx context.Context) error
}

// HopelessError reports that reconnecting to the node would fail the same way until a
// person has changed something.
type HopelessError struct{ Err error }

func (e *HopelessError) Error() string { return e.Err.Error() }
func (e *HopelessError) Unwrap() error { return e.Err }

// Keeper dials a pipe and ports of a node, and reconnects to the node if necessary.
type Keeper struct {
	Node     Node
	Pipe     string
	Reporter ui.Reporter

	turn    chan struct{} // has an element while a caller reconnects
	once    sync.Once
	mu      sync.Mutex
	made    int // number of reconnections
	failed  error
	retryAt time.Time
}

// Dial connects to the pipe. If several callers find the connection broken, one of them
// reconnects for all.
func (k *Keeper) Dial(ctx context.Context) (conn net.Conn, err error) {
	err = k.connected(ctx, func() error {
		conn, err = k.Node.DialPipe(ctx, k.Pipe)
		return err
	})
	return conn, hinted(err)
}

// DialPort connects to the TCP port of a runtime's streaming server on the node, as Dial does to the pipe.
func (k *Keeper) DialPort(ctx context.Context, address netip.AddrPort) (streaming.Conn, error) {
	conn, err := k.DialAnyPort(ctx, address)
	return conn, hinted(err)
}

// DialAnyPort connects to a TCP port of the node itself, as Dial does to the pipe.
func (k *Keeper) DialAnyPort(ctx context.Context, address netip.AddrPort) (streaming.Conn, error) {
	var conn *node.PortConn
	err := k.connected(ctx, func() (err error) {
		conn, err = k.Node.DialPort(ctx, address)
		return err
	})
	if err != nil {
		return nil, err // and no nil pointer in an interface
	}
	return conn, nil
}

// hinted returns an error about the runtime with the likely reason.
func hinted(err error) error {
	if errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("%w; is containerd running?", err)
	}
	return err
}

// connected dials, and once more after it has reconnected to the node if the connection is broken.
func (k *Keeper) connected(ctx context.Context, dial func() error) error {
	before, _ := k.state()
	err := dial()
	var lost *node.LostError
	if errors.As(err, &lost) {
		if err := k.reconnect(ctx, before); err != nil {
			return err
		}
		err = dial()
	}
	return err
}

func (k *Keeper) state() (made int, failed error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Now().Before(k.retryAt) {
		failed = k.failed
	}
	return k.made, failed
}

// reconnect connects to the node again. before is the number of reconnections that the
// caller has seen: if there are more by now, another caller has reconnected, and reconnect
// does nothing. Within restTime after a failed attempt, reconnect returns that attempt's
// error.
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
	k.Reporter.Warn("the connection is lost; reconnecting")
	err := k.Node.Reconnect(ctx)
	if err == nil {
		k.Reporter.Info("reconnected")
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
