package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		switch err := wait.For(t.Context(), time.Minute); {
		case err != nil:
			t.Error(err)
		case time.Since(begun) != time.Minute:
			t.Errorf("time.Since(begun) is %v, want %v", time.Since(begun), time.Minute)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun = time.Now()
		if err := wait.For(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(begun) != time.Second {
			t.Errorf("cut short: %v after %s", err, time.Since(begun))
		}
		if err := wait.For(t.Context(), 0); err != nil {
			t.Errorf("no time at all: %v", err)
		}
		if err := wait.For(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no time at all, and ended before: %v", err)
		}
	})
}
