package hcs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// endTimeout is the maximum time for a system to end after it was terminated.
	endTimeout = 30 * time.Second
	endTick    = 200 * time.Millisecond
)

// StillThereError reports a compute system that did not end after it was terminated.
type StillThereError struct{ ID, State string }

func (e *StillThereError) Error() string {
	return fmt.Sprintf("compute system %s was terminated %s ago and is still %s; kill its shim with: "+
		"`swdt exec -- taskkill /f /pid PID`, or restart the node",
		e.ID, endTimeout, strings.ToLower(e.State))
}

// Kill terminates a compute system with all its processes, and waits until the system has ended or
// is stopped. If there is no such system, the error is fault.ErrNotExist. If the system does not
// end within endTimeout, the error is a *StillThereError.
func Kill(ctx context.Context, compute agentv1.ComputeClient, id string) error {
	if _, err := compute.Terminate(ctx, &agentv1.ComputeRequest{Id: id}); err != nil {
		return err
	}
	err := wait.Condition{
		Name:     fmt.Sprintf("the terminated compute system %s to end", id),
		Interval: endTick,
		Limit:    endTimeout,
		Look: func(ctx context.Context) error {
			systems, err := List(ctx, compute)
			if err != nil {
				return wait.StopIf(errors.Is(err, fault.ErrNotSupported), err)
			}
			if system, there := byID(systems, id); there && system.State != "Stopped" {
				return &StillThereError{ID: id, State: system.State}
			}
			return nil
		},
	}.Wait(ctx)
	var still *StillThereError
	if ctx.Err() == nil && errors.As(err, &still) {
		return still
	}
	return err
}

func byID(systems []System, id string) (System, bool) {
	for _, s := range systems {
		if s.ID == id {
			return s, true
		}
	}
	return System{}, false
}
