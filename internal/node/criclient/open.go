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

// AnswerLimit is the Options.Limit of commands that show the state of a node. Users also run these
// commands when the runtime hangs; the commands then show everything except the runtime's part.
const AnswerLimit = 10 * time.Second

// Options configure how Open reaches the runtime and how long the runtime's answers may take.
type Options struct {
	// Reconnect receives the progress of reconnecting to the node when the connection
	// is lost. If it is nil, the connection is not restored, and the call returns the
	// error.
	Reconnect ui.Reporter
	// Limit is how long one answer may take. After that, the call fails with a
	// *SilentError. Commands in a container are not limited. 0: no limit for any call.
	Limit time.Duration
	// DialNow makes Open dial the pipe at once, and return the error if no process listens. If
	// DialNow is false, the client's first call dials.
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

// startingWith returns a dial function. The first call of that function returns the given
// connection; later calls call the function dial.
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
