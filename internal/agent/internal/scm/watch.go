package scm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
)

// The SCM has no notification that works for every service and under Wine too,
// so states are polled: often at first, since most services change state within
// milliseconds and users notice downtime, then less often.
const (
	firstPoll = 5 * time.Millisecond
	lastPoll  = 200 * time.Millisecond
)

// StateError reports that a service did not reach the wanted state, with its
// last known status.
type StateError struct {
	Name string
	Want platform.ServiceState
	Last platform.ServiceStatus
	Err  error // why the wait ended
}

func (e *StateError) Error() string {
	last := "not seen at all"
	if e.Last.State != "" {
		last = string(e.Last.State)
	}
	if e.Last.State == platform.Stopped && e.Last.ExitCode != 0 {
		last += fmt.Sprintf(", exit code %d", e.Last.ExitCode)
		if e.Last.ExitCode == serviceSpecific {
			last += fmt.Sprintf(" (the service's own code: %d)", e.Last.SpecificExitCode)
		}
	}
	return fmt.Sprintf("wanted %s, last seen %s: %v", e.Want, last, e.Err)
}

// Unwrap returns the reason for errors.Is.
func (e *StateError) Unwrap() error { return e.Err }

// serviceSpecific is ERROR_SERVICE_SPECIFIC_ERROR.
const serviceSpecific = 1066

// watch polls a service until step returns true or an error, or until ctx ends. Every error is
// returned as a *StateError.
func watch(ctx context.Context, p *platform.Platform, name string, want platform.ServiceState,
	step func(platform.ServiceStatus) (done bool, err error),
) (platform.ServiceStatus, error) {
	var last platform.ServiceStatus
	err := wait.Condition{
		Name:        fmt.Sprintf("service %s to be %s", name, want),
		Interval:    firstPoll,
		MaxInterval: lastPoll,
		Look: func(ctx context.Context) error {
			status, err := p.Services.Status(ctx, name)
			if err != nil {
				return wait.Stop(err)
			}
			last = status
			if done, err := step(status); err != nil {
				return wait.Stop(err)
			} else if !done {
				return errOtherState
			}
			return nil
		},
	}.Wait(ctx)
	if late := (*wait.Error)(nil); errors.As(err, &late) {
		err = late.Err // a StateError itself reports the other parts of late
	}
	if err != nil {
		return last, &StateError{name, want, last, err}
	}
	return last, nil
}

var errOtherState = errors.New("the service is in another state")
