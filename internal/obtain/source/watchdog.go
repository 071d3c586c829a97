package source

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// The reasons why a download is cancelled.
var (
	errStalled = errors.New("no data arrived for too long")
	errTooSlow = errors.New("the data arrived too slowly")
	errTooLong = errors.New("it took too long in all")
)

// limitError returns the limit that ended a download, as an error; nil if no limit did.
func limitError(ctx context.Context) error {
	cause := context.Cause(ctx)
	for limit, variable := range map[error]string{errStalled: StallVariable, errTooSlow: RateVariable,
		errTooLong: TotalVariable} {
		if errors.Is(cause, limit) {
			return fmt.Errorf("%w; %s sets the limit", limit, variable)
		}
	}
	return nil
}

// watchdog cancels a request that exceeds one of the limits of time or rate.
type watchdog struct {
	limits  Limits
	stalled *time.Timer
	slow    *time.Timer
	total   *time.Timer
	window  atomic.Int64 // bytes received since the rate was last measured
	cancel  context.CancelCauseFunc
}

func newWatchdog(ctx context.Context, limits Limits) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{limits: limits, cancel: cancel}
	after := func(d time.Duration, f func()) *time.Timer {
		timer := time.AfterFunc(max(d, time.Hour), f)
		if timer.Stop(); d > 0 {
			timer.Reset(d)
		}
		return timer
	}
	w.stalled = after(limits.Stall, func() { cancel(errStalled) })
	w.total = after(limits.Total, func() { cancel(errTooLong) })
	w.slow = after(0, w.measure)
	return ctx, w
}

// begin starts to measure the rate. It is called when the response's body begins.
func (w *watchdog) begin() {
	if w.limits.Rate > 0 && w.limits.Stall > 0 {
		w.slow.Reset(w.period())
	}
}

// period returns the time over which the rate is measured. It is longer than Stall, so that
// a stall is reported as a stall, not as a low rate.
func (w *watchdog) period() time.Duration { return 2 * w.limits.Stall }

// measure cancels a request that has received too few bytes in the last period.
func (w *watchdog) measure() {
	if float64(w.window.Swap(0)) < float64(w.limits.Rate)*w.period().Seconds() {
		w.cancel(errTooSlow)
		return
	}
	w.slow.Reset(w.period())
}

// alive records that n bytes have arrived.
func (w *watchdog) alive(n int64) {
	w.window.Add(n)
	if w.limits.Stall > 0 {
		w.stalled.Reset(w.limits.Stall)
	}
}

func (w *watchdog) stop() {
	// cancel first: if measure is running, it may set its timer once more, but without effect
	w.cancel(nil)
	w.stalled.Stop()
	w.slow.Stop()
	w.total.Stop()
}
