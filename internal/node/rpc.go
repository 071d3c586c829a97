package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

// caller makes calls on the current connection, so that clients outlive a connection. It counts
// calls and converts the errors of these calls into errors of package fault.
type caller struct {
	node  string
	calls *atomic.Int64

	mu   sync.Mutex
	link *link
}

// swap makes l the current connection and returns the previous one.
func (c *caller) swap(l *link) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.link
	c.link = l
	return old
}

func (c *caller) current() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return nil, &LostError{Node: c.node, Err: errors.New("it is closed")}
	}
	return c.link, nil
}

// Invoke implements grpc.ClientConnInterface.
func (c *caller) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	c.calls.Add(1)
	l, err := c.current()
	if err != nil {
		return err
	}
	return c.explain(ctx, l, l.rpc.Invoke(ctx, method, args, reply, opts...))
}

// NewStream implements grpc.ClientConnInterface.
func (c *caller) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (
	grpc.ClientStream, error) {
	c.calls.Add(1)
	l, err := c.current()
	if err != nil {
		return nil, err
	}
	s, err := l.rpc.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return nil, c.explain(ctx, l, err)
	}
	return &stream{ClientStream: s, ctx: ctx, caller: c, link: l}, nil
}

type stream struct {
	grpc.ClientStream
	ctx    context.Context // the caller's context; gRPC also cancels the stream's own context for other reasons
	caller *caller
	link   *link
}

func (s *stream) SendMsg(m any) error {
	return s.caller.explain(s.ctx, s.link, s.ClientStream.SendMsg(m))
}

func (s *stream) RecvMsg(m any) error {
	return s.caller.explain(s.ctx, s.link, s.ClientStream.RecvMsg(m))
}

func (s *stream) CloseSend() error {
	return s.caller.explain(s.ctx, s.link, s.ClientStream.CloseSend())
}

func (c *caller) explain(ctx context.Context, l *link, err error) error {
	if err == nil || err == io.EOF { // io.EOF is gRPC's value for the end of a stream
		return err
	}
	switch code := status.Code(err); {
	case code == codes.Unavailable,
		code == codes.Canceled && ctx.Err() == nil: // cancelled by Close or Reconnect
		return c.lostError(l, err)
	}
	err = rpcerror.FromStatus(err)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil { // only this side can cancel, whatever the node claims
		return fmt.Errorf("the node ended the call: %s", err) //nolint:errorlint // no cancellation of this side
	}
	return err
}

// errHungUp replaces io.EOF, which would look like the regular end of a stream to its reader.
var errHungUp = errors.New("the node has closed the stream")

// lostError returns a *LostError. It waits up to a second for the agent to end, so that the
// error has the agent's last output.
func (c *caller) lostError(l *link, err error) error {
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-l.agent.Done():
	case <-limit.C:
	}
	e := &LostError{Node: c.node, Stderr: l.agent.Stderr(), Err: errors.New(status.Convert(err).Message())}
	select {
	case <-l.conn.Done():
		switch reason := l.conn.Err(); {
		case errors.Is(reason, io.EOF):
			e.Err = errHungUp
		case reason != nil:
			e.Err = reason
		}
	default:
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if code, err := l.agent.ExitCode(ended); err == nil {
			e.Err = fmt.Errorf("the agent ended with exit code %s", windowstext.ExitCode(code))
		}
	}
	return e
}
