package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// patience is how long commands may take to end after Ctrl-C; then, or at a
// second Ctrl-C, the process ends at once. The node takes care of itself: a
// transaction in flight is its guardian's.
const patience = 900 * time.Millisecond

// Interruptible returns a context that ends with an *InterruptedError at the
// first Ctrl-C or termination signal. The process is given `patience` to end by
// itself; then exit is called with the code for interruption. stop ends all
// that.
func Interruptible(parent context.Context, exit func(code int)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go obeySignals(signals, done, cancel, time.After, exit)
	var once sync.Once
	return ctx, func() {
		once.Do(func() {
			signal.Stop(signals)
			close(done)
			cancel(nil)
		})
	}
}

func obeySignals(signals <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc,
	after func(time.Duration) <-chan time.Time, exit func(code int),
) {
	select {
	case s := <-signals:
		cancel(&InterruptedError{Signal: s.String()})
	case <-done:
		return
	}
	select {
	case <-signals:
	case <-after(patience):
	case <-done:
		return
	}
	exit(exitInterrupted)
}
