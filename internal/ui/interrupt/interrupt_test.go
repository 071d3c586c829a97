package interrupt

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestFirstSignalCancelsSecondKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		signals, done, exits := make(chan os.Signal), make(chan struct{}), make(chan struct{}, 1)
		go obeySignals(signals, done, cancel, (&firstSignal{}).timeToEnd, func() { exits <- struct{}{} })
		signals <- os.Interrupt
		<-ctx.Done()
		var interrupted *Error
		if !errors.As(context.Cause(ctx), &interrupted) {
			t.Errorf("cause: %v", context.Cause(ctx))
		}
		begun := time.Now()
		signals <- os.Interrupt
		<-exits
		if took := time.Since(begun); took != 0 {
			t.Errorf("exit after %s", took)
		}
	})
}

func TestACommandThatDoesNotEndIsEndedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cancel := context.WithCancelCause(t.Context())
		signals, done, exits := make(chan os.Signal), make(chan struct{}), make(chan struct{}, 1)
		go obeySignals(signals, done, cancel, (&firstSignal{}).timeToEnd, func() { exits <- struct{}{} })
		begun := time.Now()
		signals <- os.Interrupt
		<-exits
		if took := time.Since(begun); took >= time.Second {
			t.Errorf("exit after %s", took)
		}
	})
}

// A command that removes a VM gets the time for it, until a second Ctrl-C.
func TestACommandThatAllowsTimeGetsIt(t *testing.T) {
	for name, test := range map[string]struct {
		second bool
		took   time.Duration
	}{"the limit ends it": {took: time.Minute}, "a second signal ends it": {second: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := &firstSignal{}
				ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), firstSignalKey{}, first))
				signals, done, exits := make(chan os.Signal), make(chan struct{}), make(chan struct{}, 1)
				defer AllowTime(ctx, time.Minute)()
				go obeySignals(signals, done, cancel, first.timeToEnd, func() { exits <- struct{}{} })
				begun := time.Now()
				signals <- os.Interrupt
				<-ctx.Done()
				if test.second {
					signals <- os.Interrupt
				}
				<-exits
				if took := time.Since(begun); took != test.took {
					t.Errorf("exit after %s, want %s", took, test.took)
				}
			})
		})
	}
}

func TestTimeIsAllowedUntilTheCommandIsDone(t *testing.T) {
	ctx, stop := Context(t.Context(), func() { t.Error("exit was called") })
	defer stop()
	first := ctx.Value(firstSignalKey{}).(*firstSignal)
	outer := AllowTime(ctx, time.Minute)
	inner := AllowTime(ctx, time.Hour)
	again := AllowTime(ctx, time.Hour)
	again()
	for _, step := range []struct {
		done func()
		left time.Duration
	}{{func() {}, time.Hour}, {inner, time.Minute}, {outer, endWithin}, {outer, endWithin}} {
		step.done()
		if got := first.timeToEnd(); got != step.left {
			t.Errorf("%s, want %s", got, step.left)
		}
	}
	AllowTime(t.Context(), time.Minute)() // without signals it does nothing
}

func TestSignalAfterTheEndKillsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cancel := context.WithCancelCause(t.Context())
		signals, done := make(chan os.Signal), make(chan struct{})
		go obeySignals(signals, done, cancel, (&firstSignal{}).timeToEnd,
			func() { t.Error("killed a command that had ended") })
		signals <- os.Interrupt
		close(done)
		time.Sleep(time.Minute)
	})
}
