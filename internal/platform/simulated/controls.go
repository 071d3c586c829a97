package simulated

import (
	"context"
	"errors"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// controlTimeout is how long ControlService waits for a handler. The SCM delivers one control at a time, whatever
// service it is for: "A call to ControlService will block for 30 seconds if any service is busy handling a control code.
// If the busy service still has not returned from its handler function when the timeout expires, ControlService fails
// with ERROR_SERVICE_REQUEST_TIMEOUT." (learn.microsoft.com, ControlService, remarks) The remarks of StartService say the
// same of a start.
const controlTimeout = 30 * time.Second

// HangInHandler makes the service's handler not return from the next control on.
func (c *ServiceControl) HangInHandler() {
	m := c.s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	c.hangs = true
}

// deliverStop delivers the stop control to a service, once the SCM waits for no other handler.
func (m *Machine) deliverStop(ctx context.Context, p *process, name string) error {
	m.mu.Lock()
	err := m.mayStop(p, name)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	if err := m.await(bounded, func() bool { return !m.busy || p.gone }); err != nil {
		return notDelivered(ctx, err)
	}
	m.mu.Lock()
	if err := m.mayStop(p, name); err != nil {
		m.mu.Unlock()
		return err
	}
	s := m.services[fold(name)]
	run := s.run
	if run == nil || !run.hangs || s.state != platform.Running {
		defer m.mu.Unlock()
		return s.stop()
	}
	m.busy = true
	m.mu.Unlock()
	err = m.await(bounded, func() bool { return run.p.gone || p.gone })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = false
	m.notify()
	return notDelivered(ctx, err)
}

// awaitTurn waits until the SCM waits for no handler.
func (m *Machine) awaitTurn(ctx context.Context, p *process) error {
	bounded, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return notDelivered(ctx, m.await(bounded, func() bool { return !m.busy || p.gone }))
}

// mayStop returns an error if the SCM refuses to deliver a control to a service; the caller holds the lock.
func (m *Machine) mayStop(p *process, name string) error {
	if p.gone {
		return ErrKilled
	}
	if err := m.openManager(); err != nil {
		return err
	}
	_, err := m.service(name)
	return err
}

// notDelivered returns the error of a wait for a handler.
func notDelivered(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fault.ErrNotDelivered
	}
	return err
}
