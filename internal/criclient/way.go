package criclient

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// way is the way to the runtime, and why it was last closed.
type way struct {
	dial  func(context.Context) (net.Conn, error)
	asked metadata.MD // of the node: grpc dials with a context of its own

	mu     sync.Mutex
	closed error
}

// connect takes from an error of dial the status that the agent gave it: grpc would
// make it its calls', and of some kinds say that they are illegal there.
func (w *way) connect(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := w.dial(metadata.NewOutgoingContext(ctx, w.asked))
	if err != nil {
		err = errors.New(err.Error())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = err
	return conn, err
}

func (w *way) why() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// call says of a call that failed why, without grpc's words about itself.
func (w *way) call(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, reply, c, options...)
	if err == nil {
		return nil
	}
	failed := &CallError{Text: status.Convert(err).Message(), Err: err}
	if why := w.why(); why != nil && status.Code(err) == codes.Unavailable {
		failed.Text = why.Error()
	}
	return failed
}

// CallError is a call that failed: the runtime's words, or why there is no way to
// it.
type CallError struct {
	Text string
	Err  error // with the status
}

func (e *CallError) Error() string { return e.Text }
func (e *CallError) Unwrap() error { return e.Err }
