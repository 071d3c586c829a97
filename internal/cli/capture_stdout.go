package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// packetsOut is stdout for packets. Where nobody reads them any more, the capture
// ends on every node, those too that have none just then.
type packetsOut struct {
	to  io.Writer
	end context.CancelCauseFunc
}

// packetsError: packets could not be written.
type packetsError struct{ err error }

func (e *packetsError) Error() string { return fmt.Sprintf("write packets to stdout: %v", e.err) }
func (e *packetsError) Unwrap() error { return e.err }

// packetsTo gives a context that ends when a packet cannot be written; stop has to
// be called. Without it, a pipe that nobody reads would end swdt at once, with all
// that it has in its folder.
func packetsTo(parent context.Context, to io.Writer) (ctx context.Context, out *packetsOut, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	broken := make(chan os.Signal, 1) // nobody looks: the write tells
	signal.Notify(broken, syscall.SIGPIPE)
	return ctx, &packetsOut{to, cancel}, func() {
		signal.Stop(broken)
		cancel(nil)
	}
}

func (o *packetsOut) Write(data []byte) (int, error) {
	n, err := o.to.Write(data)
	if err != nil {
		err = &packetsError{err}
		o.end(err)
	}
	return n, err
}

// unwritten is why ctx has ended, where that was a packet that could not be written:
// said once, and not of each node.
func unwritten(ctx context.Context, err error) error {
	var failed *packetsError
	if errors.As(context.Cause(ctx), &failed) {
		return failed
	}
	return err
}
