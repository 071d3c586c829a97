package scm

import (
	"context"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/wait"
)

// The SCM has no notification that would work for every service and under Wine
// too, so states are polled: densely at first, since most services change state
// within milliseconds and downtime is what people feel, then at ease.
const (
	firstPoll = 5 * time.Millisecond
	lastPoll  = 200 * time.Millisecond
)

// StateError says that a service did not come to the state that was wanted, and
// how it was last seen.
type StateError struct {
	Name string
	Want host.ServiceState
	Last host.ServiceStatus
	Err  error // why the wait ended
}

func (e *StateError) Error() string {
	last := "not seen at all"
	if e.Last.State != "" {
		last = string(e.Last.State)
	}
	if e.Last.State == host.Stopped && e.Last.ExitCode != 0 {
		last += fmt.Sprintf(", exit code %d", e.Last.ExitCode)
		if e.Last.ExitCode == serviceSpecific {
			last += fmt.Sprintf(" (its own: %d)", e.Last.SpecificExitCode)
		}
	}
	return fmt.Sprintf("wanted %s, last seen %s: %v", e.Want, last, e.Err)
}

// Unwrap gives errors.Is the reason.
func (e *StateError) Unwrap() error { return e.Err }

// serviceSpecific is ERROR_SERVICE_SPECIFIC_ERROR.
const serviceSpecific = 1066

// watch looks at a service until step is content, fails, or ctx ends. Failures
// come as *StateError.
func watch(ctx context.Context, h *host.Host, name string, want host.ServiceState,
	step func(host.ServiceStatus) (done bool, err error),
) (host.ServiceStatus, error) {
	var last host.ServiceStatus
	for pause := firstPoll; ; pause = min(pause*2, lastPoll) {
		status, err := h.Services.Status(ctx, name)
		if err != nil {
			return last, &StateError{name, want, last, err}
		}
		last = status
		if done, err := step(status); err != nil {
			return last, &StateError{name, want, last, err}
		} else if done {
			return last, nil
		}
		if err := wait.For(ctx, pause); err != nil {
			return last, &StateError{name, want, last, err}
		}
	}
}
