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
	first := &firstSignal{}
	go obeySignals(first.taken(signals, done), done, cancel, time.After, exit)
	ctx = context.WithValue(ctx, firstSignalKey{}, first)
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

// firstSignal may be taken by a command that ends in its own good time at the
// first Ctrl-C, with a result: see gracefully. The second one is then the first.
type firstSignal struct {
	mu   sync.Mutex
	take chan struct{} // nil: nobody takes it
}

type firstSignalKey struct{}

// gracefully gives a channel that the first Ctrl-C closes, in place of ending ctx.
// It is nil, which never closes, where nobody listens to signals.
func gracefully(ctx context.Context) <-chan struct{} {
	first, ok := ctx.Value(firstSignalKey{}).(*firstSignal)
	if !ok {
		return nil
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	first.take = make(chan struct{})
	return first.take
}

// taken passes on the signals that nobody takes.
func (f *firstSignal) taken(signals <-chan os.Signal, done <-chan struct{}) <-chan os.Signal {
	rest := make(chan os.Signal, cap(signals))
	go func() {
		for {
			select {
			case s := <-signals:
				if f.takes() {
					continue
				}
				select {
				case rest <- s:
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	return rest
}

func (f *firstSignal) takes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.take == nil {
		return false
	}
	close(f.take)
	f.take = nil
	return true
}
