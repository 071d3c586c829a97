package swap

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
)

// shutdownLimit is how long a guardian waits for its own end once Windows has begun to shut down.
const shutdownLimit = 5 * time.Minute

// ends reports whether the guardian has to end. If Windows shuts down, services end and none starts, which looks like a
// failure of a new binary: ends then waits for the guardian's own end, which comes later than that of a service that was
// registered earlier.
func (t *transaction) ends(ctx context.Context) bool {
	if shutsDown(ctx, t.Machine) {
		_ = wait.For(ctx, shutdownLimit)
	}
	return ctx.Err() != nil
}

// shutsDown reports whether Windows has begun to shut down, as far as it answers.
func shutsDown(ctx context.Context, m Machine) bool {
	down, err := m.Platform.Machine.ShuttingDown(ctx)
	return err == nil && down
}
