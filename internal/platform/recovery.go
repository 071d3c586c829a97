package platform

import "time"

// Recovery is the SCM's reaction when a service fails: when its process ends without having reported that the
// service stopped.
type Recovery struct {
	// Restarts are the delays before the first, second, … restart.
	Restarts []time.Duration
	// RepeatLast makes the SCM restart the service after each further failure too, with the last delay. Without
	// it, the SCM does nothing more after the last restart.
	RepeatLast bool
	// OnErrorExit makes a stop that the service itself reports with an exit code other than 0 count as a failure.
	OnErrorExit bool
	// Reboots reports whether one of the actions restarts Windows. Create and Configure do not set it.
	Reboots bool
	// Reset is the time without a failure after which the SCM counts failures from zero again; 0: it never does.
	Reset time.Duration
}

// Failures counts the failures of a service since the system booted, as the SCM does. The zero value has none.
//
// The rule is the one that Microsoft documents: "The service control manager counts the number of times each service
// has failed since the system booted. The count is reset to 0 if the service has not failed for dwResetPeriod
// seconds. When the service fails for the Nth time, the service controller performs the action specified in element
// [N-1] of the lpsaActions array. If N is greater than cActions, the service controller repeats the last action in
// the array." (learn.microsoft.com, SERVICE_FAILURE_ACTIONSW)
type Failures struct {
	count int
	last  time.Time
}

// Failed counts a failure at a time. It returns the delay after which the SCM restarts the service; restarts is
// false if the SCM leaves the service stopped.
func (f *Failures) Failed(r Recovery, at time.Time) (delay time.Duration, restarts bool) {
	if r.Reset > 0 && f.count > 0 && at.Sub(f.last) >= r.Reset {
		f.count = 0
	}
	f.count++
	f.last = at
	switch {
	case f.count <= len(r.Restarts):
		return r.Restarts[f.count-1], true
	case r.RepeatLast && len(r.Restarts) > 0:
		return r.Restarts[len(r.Restarts)-1], true
	}
	return 0, false
}

// CountsAsFailure reports whether a service has failed that reported its stop with this exit code. The SCM's flag for
// it is off unless it was set. (learn.microsoft.com, SERVICE_FAILURE_ACTIONS_FLAG)
func (r Recovery) CountsAsFailure(exitCode uint32) bool { return r.OnErrorExit && exitCode != 0 }
