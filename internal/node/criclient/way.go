package criclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// mostConnections bounds the connections that the runtime may end before it answers one call. grpc repeats a call
// that was not sent on a new connection, at once and without end.
const mostConnections = 3

// way dials the runtime. It keeps the error of the last dial, which call returns if a call fails
// because the runtime cannot be reached.
type way struct {
	dial  func(context.Context) (net.Conn, error)
	asked metadata.MD // the caller's metadata for calls to the node; grpc's own contexts for dialing lack it

	mu     sync.Mutex
	closed error
	opened int // the connections since a call began
}

// connect dials for grpc. It removes the agent's gRPC status from an error of dial, because grpc
// would use that status as the status of its own calls, and report some codes as illegal.
func (w *way) connect(ctx context.Context, _ string) (net.Conn, error) {
	if err := w.open(); err != nil {
		return nil, err
	}
	conn, err := w.dial(metadata.NewOutgoingContext(ctx, w.asked))
	if err != nil {
		err = errors.New(err.Error())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = err
	return conn, err
}

// open counts a connection, or returns an error if there were too many since a call began. After an error, grpc
// ends the calls that wait, and waits longer each time before it connects again.
func (w *way) open() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened == mostConnections {
		w.opened-- // grpc tries again after a while
		w.closed = fmt.Errorf("the container runtime ended %d connections before it answered", mostConnections)
		return w.closed
	}
	w.opened++
	return nil
}

// begin allows a call its connections.
func (w *way) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = 0
}

func (w *way) why() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// call returns a failed call's error as a *CallError, without the prefixes that grpc adds to texts.
// If the runtime cannot be reached, the text is the error of the last dial.
func (w *way) call(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption) error {
	w.begin()
	err := invoke(ctx, method, request, reply, c, options...)
	var refused *RefusedError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	failed := &CallError{Text: status.Convert(err).Message(), Err: err}
	if why := w.why(); why != nil && status.Code(err) == codes.Unavailable {
		failed.Text = why.Error()
	}
	return failed
}

// CallError reports a call that failed. Text has the runtime's message, or the reason
// why the runtime cannot be reached.
type CallError struct {
	Text string
	Err  error // gRPC's error, which has the status
}

func (e *CallError) Error() string { return e.Text }
func (e *CallError) Unwrap() error { return e.Err }
