package criclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/node/criproxy"
	"github.com/swdt-dev/swdt/internal/ui"
)

// AnswerLimit is the limit for commands that show what a node runs. Users also run them
// because the runtime hangs; the commands then show everything but the runtime's part.
const AnswerLimit = 10 * time.Second

// Options say how the runtime is reached and how long its answers may take.
type Options struct {
	// Reconnect, unless nil, connects to the node again when the connection is lost,
	// and reports it. Otherwise a lost connection is the error of the call.
	Reconnect ui.Reporter
	// Limit is how long one answer may take; then the call's error is a *SilentError.
	// Running a command in a container has no limit. 0: no call has one.
	Limit time.Duration
	// DialNow makes Open dial the pipe, and return the error if no process listens.
	// Otherwise the first call dials.
	DialNow bool
}

// Open returns a client of the runtime that listens on a pipe of a node. The caller
// closes it.
func Open(ctx context.Context, n criproxy.Node, pipe string, o Options) (*Client, error) {
	dial := func(ctx context.Context) (net.Conn, error) { return n.DialPipe(ctx, pipe) }
	if o.Reconnect != nil {
		keeper := &criproxy.Keeper{Node: n, Pipe: pipe, Reporter: o.Reconnect}
		dial = keeper.Dial
	}
	if o.DialNow {
		first, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		dial = startingWith(first, dial)
	}
	return connect(ctx, dial, answeringWithin(o.Limit))
}

// startingWith returns a dial function that returns first, and then what dial returns.
func startingWith(first net.Conn, dial criproxy.Dial) criproxy.Dial {
	unused := make(chan net.Conn, 1)
	unused <- first
	return func(ctx context.Context) (net.Conn, error) {
		select {
		case conn := <-unused:
			return conn, nil
		default:
			return dial(ctx)
		}
	}
}

// SilentError is returned if the runtime did not answer within the limit.
type SilentError struct{ Limit time.Duration }

func (e *SilentError) Error() string {
	return fmt.Sprintf("the container runtime does not answer within %s", e.Limit)
}

// answeringWithin limits how long each answer may take.
func answeringWithin(limit time.Duration) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker,
		options ...grpc.CallOption,
	) error {
		if limit == 0 || method == runtimev1.RuntimeService_ExecSync_FullMethodName {
			return invoke(ctx, method, request, reply, c, options...)
		}
		silent := &SilentError{limit}
		ctx, cancel := context.WithTimeoutCause(ctx, limit, silent)
		defer cancel()
		err := invoke(ctx, method, request, reply, c, options...)
		if err != nil && errors.Is(context.Cause(ctx), silent) {
			return silent
		}
		return err
	}
}
