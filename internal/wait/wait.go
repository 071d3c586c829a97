// Package wait waits between two looks at what only polling can tell.
package wait

import (
	"context"
	"time"
)

// For waits for d, or returns ctx's error when that ends before. It does not wait
// where d is not positive.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
