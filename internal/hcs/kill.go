package hcs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
)

const (
	// endTimeout is how long a system that was terminated may take to be gone.
	endTimeout = 30 * time.Second
	endTick    = 200 * time.Millisecond
)

// StillThereError is a compute system that was terminated and did not go.
type StillThereError struct{ ID, State string }

func (e *StillThereError) Error() string {
	return fmt.Sprintf("compute system %s was told to end %s ago and is %s; end its shim with: `swdt exec -- taskkill /f /pid PID`, or restart the node",
		e.ID, endTimeout, strings.ToLower(e.State))
}

// Kill ends a compute system with all that runs in it, and waits until it has gone
// or is stopped. One that is not there is host.ErrNotExist.
func Kill(ctx context.Context, compute agentv1.ComputeClient, id string) error {
	if _, err := compute.Terminate(ctx, &agentv1.ComputeRequest{Id: id}); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	ticker := time.NewTicker(endTick)
	defer ticker.Stop()
	state, failed := "", error(nil) // of the last look that was not cut short
	for {
		systems, err := List(bounded, compute)
		switch {
		case err == nil:
			system, there := byID(systems, id)
			if !there || system.State == "Stopped" {
				return nil
			}
			state, failed = system.State, nil
		case errors.Is(err, host.ErrNotSupported):
			return err
		case bounded.Err() == nil:
			failed = err
		}
		select {
		case <-ticker.C:
		case <-bounded.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if failed != nil || state == "" {
				return fmt.Errorf("look whether compute system %s, which was told to end, has gone: %w", id, cmp.Or(failed, bounded.Err()))
			}
			return &StillThereError{ID: id, State: state}
		}
	}
}

func byID(systems []System, id string) (System, bool) {
	for _, s := range systems {
		if s.ID == id {
			return s, true
		}
	}
	return System{}, false
}
