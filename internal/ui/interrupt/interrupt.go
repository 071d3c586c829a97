// Package interrupt ends a command at Ctrl-C. It ends the command's context first, and soon
// after that the process.
package interrupt

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Error is the cause of a context that a signal ended.
type Error struct{ Signal string }

func (e *Error) Error() string { return "interrupted (" + e.Signal + ")" }

// endWithin is the time that a command has to end after Ctrl-C, unless it called AllowTime. After
// that time, or at a second Ctrl-C, the process ends immediately. The node needs no more time,
// since its guardian finishes a running transaction.
const endWithin = 900 * time.Millisecond

// Context returns a context that ends with an *Error at the first Ctrl-C or termination
// signal. If the process has not ended soon after that, exit is called. stop releases the
// signals.
func Context(parent context.Context, exit func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	first := &firstSignal{}
	go obeySignals(first.unclaimed(signals, done), done, cancel, first.timeToEnd, exit)
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
	timeToEnd func() time.Duration, exit func(),
) {
	select {
	case s := <-signals:
		cancel(&Error{Signal: s.String()})
	case <-done:
		return
	}
	select {
	case <-signals:
	case <-time.After(timeToEnd()):
	case <-done:
		return
	}
	exit()
}

// firstSignal passes the first Ctrl-C to a command that called Gracefully. This command then ends
// by itself, with a result. Context handles the second signal as if it were the first.
type firstSignal struct {
	mu      sync.Mutex
	claimed chan struct{} // closed at the first signal; nil: no command handles this signal
	// allowed has the limits of the calls of AllowTime that are not done, each under a key of its own.
	allowed map[*time.Duration]struct{}
}

type firstSignalKey struct{}

// AllowTime gives the command another time to end after Ctrl-C: limit instead of endWithin. This
// holds until the caller calls done. A command calls AllowTime if it must clean up before it ends,
// for example if it must end a VM. If several callers are not done, the longest limit holds. A second
// Ctrl-C still ends the process immediately. If ctx does not derive from Context, AllowTime does
// nothing.
func AllowTime(ctx context.Context, limit time.Duration) (done func()) {
	first, ok := ctx.Value(firstSignalKey{}).(*firstSignal)
	if !ok {
		return func() {}
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	if first.allowed == nil {
		first.allowed = map[*time.Duration]struct{}{}
	}
	first.allowed[&limit] = struct{}{}
	return func() {
		first.mu.Lock()
		defer first.mu.Unlock()
		delete(first.allowed, &limit)
	}
}

// timeToEnd returns the time that the command has to end after Ctrl-C.
func (f *firstSignal) timeToEnd() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var longest time.Duration
	for limit := range f.allowed {
		longest = max(longest, *limit)
	}
	return cmp.Or(longest, endWithin)
}

// Gracefully returns a channel. The first Ctrl-C closes that channel instead of ending ctx.
// If ctx does not derive from Context, the channel is nil, so it never closes.
func Gracefully(ctx context.Context) <-chan struct{} {
	first, ok := ctx.Value(firstSignalKey{}).(*firstSignal)
	if !ok {
		return nil
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	first.claimed = make(chan struct{})
	return first.claimed
}

// unclaimed returns a channel of the signals that Context must handle: all signals, except
// one that a command handles. The channel gets no more signals after done is closed.
func (f *firstSignal) unclaimed(signals <-chan os.Signal, done <-chan struct{}) <-chan os.Signal {
	rest := make(chan os.Signal, cap(signals))
	go func() {
		for {
			select {
			case s := <-signals:
				if f.claims() {
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

func (f *firstSignal) claims() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claimed == nil {
		return false
	}
	close(f.claimed)
	f.claimed = nil
	return true
}
