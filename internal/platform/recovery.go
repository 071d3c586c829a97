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
	// Actions are all actions if Restarts cannot say them: if one runs a command or restarts Windows, or does nothing
	// and is not the last. Create and Configure set them in place of Restarts. The command and the message of a restart
	// of Windows are settings of their own, which Create and Configure leave as they are.
	Actions []RecoveryAction
	// Reset is the time without a failure after which the SCM counts failures from zero again; 0: it never does.
	Reset time.Duration
}

// RecoveryAction is one action of the SCM, and the time after which it is taken.
type RecoveryAction struct {
	Kind  RecoveryKind
	After time.Duration
}

// RecoveryKind is a kind of action: SC_ACTION_TYPE ("SC_ACTION structure" on learn.microsoft.com).
type RecoveryKind uint32

const (
	RecoverNothing RecoveryKind = iota
	RecoverByRestart
	RecoverByReboot
	RecoverByCommand
)

// SayActions sets the fields that follow from the actions of a service.
func (r *Recovery) SayActions(actions []RecoveryAction) {
	r.Restarts, r.Actions, r.RepeatLast, r.Reboots = nil, nil, false, false
	for i, a := range actions {
		switch {
		case a.Kind == RecoverByRestart && len(r.Restarts) == i:
			r.Restarts = append(r.Restarts, a.After)
		case a.Kind != RecoverNothing || i != len(actions)-1:
			r.Actions = actions
		}
		r.Reboots = r.Reboots || a.Kind == RecoverByReboot
	}
	r.RepeatLast = len(actions) > 0 && len(r.Restarts) == len(actions)
}

// List returns the actions of the SCM. It repeats the last one for ever.
func (r Recovery) List() []RecoveryAction {
	if len(r.Actions) > 0 {
		return r.Actions
	}
	var actions []RecoveryAction
	for _, after := range r.Restarts {
		actions = append(actions, RecoveryAction{RecoverByRestart, after})
	}
	if !r.RepeatLast || len(actions) == 0 {
		actions = append(actions, RecoveryAction{})
	}
	return actions
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
