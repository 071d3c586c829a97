package cluster

import (
	"context"
	"time"
)

// pollInterval is how often a wait looks again. It polls rather than watches: a
// watch has to be begun anew whenever the server or a proxy ends it, and one
// object a second is nothing to an API server.
const pollInterval = time.Second

// pause waits for d, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
