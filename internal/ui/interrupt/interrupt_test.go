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
		go obeySignals(signals, done, cancel, time.After, func() { exits <- struct{}{} })
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
		go obeySignals(signals, done, cancel, time.After, func() { exits <- struct{}{} })
		begun := time.Now()
		signals <- os.Interrupt
		<-exits
		if took := time.Since(begun); took >= time.Second {
			t.Errorf("exit after %s", took)
		}
	})
}

func TestSignalAfterTheEndKillsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cancel := context.WithCancelCause(t.Context())
		signals, done := make(chan os.Signal), make(chan struct{})
		go obeySignals(signals, done, cancel, time.After, func() { t.Error("killed a command that had ended") })
		signals <- os.Interrupt
		close(done)
		time.Sleep(time.Minute)
	})
}
