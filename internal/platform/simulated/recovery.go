package simulated

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
)

// recover carries out the recovery actions of a service whose process ended without a report; the caller holds the
// lock.
func (s *service) recover() {
	s.m.logServiceCrash(s.config.Name)
	s.failed()
}

// exitedWith carries out the recovery actions of a service that reported its stop, if they apply to its exit code;
// the caller holds the lock.
func (s *service) exitedWith(code uint32) {
	if r := s.config.Recovery; r != nil && r.CountsAsFailure(code) {
		s.failed()
	}
}

// failed counts a failure and restarts the service after the delay of its recovery actions.
func (s *service) failed() {
	r := s.config.Recovery
	if r == nil || s.deleting || s.m.boot == nil {
		return
	}
	if r.Reboots {
		s.m.spawn(s.m.Reboot)
		return
	}
	delay, restarts := s.failures.Failed(*r, time.Now())
	if !restarts {
		return
	}
	name, args, boot := s.config.Name, s.args, s.m.boot.ctx
	ctx, cancel := context.WithCancel(boot)
	s.restart = cancel
	s.m.spawn(func() {
		defer cancel()
		if wait.For(ctx, delay) == nil {
			// If a manual start came first, ctx is cancelled or this start fails because the
			// service runs.
			_ = s.m.startService(boot, name, args, nil)
		}
	})
}

func (s *service) cancelRestart() {
	if s.restart != nil {
		s.restart()
		s.restart = nil
	}
}
