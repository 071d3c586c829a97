package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// Stdout is a writer of packets to stdout. If the reader of stdout is gone, the capture
// ends on every node, even on nodes without packets at that moment.
type Stdout struct {
	to  io.Writer
	end context.CancelCauseFunc
}

// StdoutError reports that packets could not be written to stdout.
type StdoutError struct{ err error }

func (e *StdoutError) Error() string { return fmt.Sprintf("write packets to stdout: %v", e.err) }
func (e *StdoutError) Unwrap() error { return e.err }

// ToStdout returns a context that ends when a packet cannot be written. The caller must call stop.
// Until then, ToStdout catches SIGPIPE: without this, a write to a pipe without a reader would end
// swdt immediately, before swdt removes its folder.
func ToStdout(parent context.Context, to io.Writer) (ctx context.Context, out *Stdout, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	broken := make(chan os.Signal, 1) // the channel is not read, since the write returns the error
	signal.Notify(broken, syscall.SIGPIPE)
	return ctx, &Stdout{to, cancel}, func() {
		signal.Stop(broken)
		cancel(nil)
	}
}

func (o *Stdout) Write(data []byte) (int, error) {
	n, err := o.to.Write(data)
	if err != nil {
		err = &StdoutError{err}
		o.end(err)
	}
	return n, err
}

// Unwritten returns the *StdoutError that ended ctx, or err if no such error ended ctx. So the
// caller can report the *StdoutError once, and not once for each node. Unwritten returns nil if the
// reader of stdout has closed it, as head does after its lines.
func Unwritten(ctx context.Context, err error) error {
	var failed *StdoutError
	switch {
	case !errors.As(context.Cause(ctx), &failed):
		return err
	case readerLeft(failed):
		return nil
	}
	return failed
}

// readerLeft reports whether the reader of a pipe has closed it. On Windows, os.File returns the
// Win32 errors ERROR_BROKEN_PIPE and ERROR_NO_DATA for that.
func readerLeft(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232)
	if runtime.GOOS == "windows" {
		return errors.Is(err, brokenPipe) || errors.Is(err, noData)
	}
	return errors.Is(err, syscall.EPIPE)
}
