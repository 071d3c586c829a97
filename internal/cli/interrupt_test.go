package cli

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
		signals, done, exits := make(chan os.Signal), make(chan struct{}), make(chan int, 1)
		go obeySignals(signals, done, cancel, time.After, func(code int) { exits <- code })
		signals <- os.Interrupt
		<-ctx.Done()
		var interrupted *InterruptedError
		if !errors.As(context.Cause(ctx), &interrupted) {
			t.Errorf("cause: %v", context.Cause(ctx))
		}
		begun := time.Now()
		signals <- os.Interrupt
		if code := <-exits; code != exitInterrupted || time.Since(begun) != 0 {
			t.Errorf("exit %d after %s", code, time.Since(begun))
		}
	})
}

func TestACommandThatDoesNotEndIsEndedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cancel := context.WithCancelCause(t.Context())
		signals, done, exits := make(chan os.Signal), make(chan struct{}), make(chan int, 1)
		go obeySignals(signals, done, cancel, time.After, func(code int) { exits <- code })
		begun := time.Now()
		signals <- os.Interrupt
		if code := <-exits; code != exitInterrupted || time.Since(begun) >= time.Second {
			t.Errorf("exit %d after %s", code, time.Since(begun))
		}
	})
}

func TestNobodyIsKilledAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cancel := context.WithCancelCause(t.Context())
		signals, done := make(chan os.Signal), make(chan struct{})
		go obeySignals(signals, done, cancel, time.After, func(int) { t.Error("killed a command that had ended") })
		signals <- os.Interrupt
		close(done)
		time.Sleep(time.Minute)
	})
}
