package simulated

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
)

// How long an orderly shutdown waits for services. preshutdownTimeout is the SCM's default for each service that
// accepts PRESHUTDOWN (SERVICE_PRESHUTDOWN_INFO: 10 s since Windows 10 1703). killServiceTimeout is
// WaitToKillServiceTimeout, for all others together: "Service Control Handler Function" names the value and "approximately
// 20 seconds" as the default, others have seen 5 s (coretechnologies.com, "increase-shutdown-time"); docs/guesses.md. A
// handler may take 30 s; here it takes handlerTime.
const (
	handlerTime        = 50 * time.Millisecond
	preshutdownTimeout = 10 * time.Second
	killServiceTimeout = 5 * time.Second
)

// AcceptPreshutdown makes the SCM notify the service of a shutdown before the services that accept SHUTDOWN, as
// all services of this package do otherwise.
func (c *ServiceControl) AcceptPreshutdown() {
	m := c.s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	c.preshutdown = true
}

// endServices is the SCM's part of an orderly shutdown of the boot `current`. From its beginning, no service starts any
// more (1115). First the services end that accept PRESHUTDOWN; the SCM waits for them. Then the others get SHUTDOWN,
// "in the order that they appear in the installed service database", which is the order of their creation: each handler
// is called after the one before it has returned. A service that has not ended in time ends with Windows. endServices reports
// whether this call began the shutdown; it waits for the end of one that had begun.
func (m *Machine) endServices(current *boot) (began bool) {
	m.mu.Lock()
	if m.closed || m.boot != current {
		m.mu.Unlock()
		return false
	}
	if current.shuttingDown {
		m.mu.Unlock()
		<-current.ctx.Done()
		return false
	}
	current.shuttingDown = true
	services := make([]*service, 0, len(m.services))
	for _, s := range m.services {
		s.cancelRestart()
		services = append(services, s)
	}
	m.mu.Unlock()
	slices.SortFunc(services, func(a, b *service) int { return cmp.Compare(a.created, b.created) })
	m.tellServices(current, services, true, preshutdownTimeout)
	m.tellServices(current, services, false, killServiceTimeout)
	return true
}

// tellServices notifies the services of a shutdown that do or do not accept PRESHUTDOWN, one after the other, and waits at
// most `limit` until they have ended.
func (m *Machine) tellServices(current *boot, services []*service, preshutdown bool, limit time.Duration) {
	ctx, cancel := context.WithTimeout(current.ctx, limit)
	defer cancel()
	var controls []*ServiceControl
	for _, s := range services {
		m.mu.Lock()
		control := s.run
		told := control != nil && control.preshutdown == preshutdown && s.state != platform.Stopped
		m.mu.Unlock()
		if !told {
			continue
		}
		controls = append(controls, control)
		m.inHandler(ctx, control)
	}
	_ = m.await(ctx, func() bool {
		return !slices.ContainsFunc(controls, func(c *ServiceControl) bool { return c.s.run == c && !c.p.gone })
	})
}

// inHandler calls the handler of a service.
func (m *Machine) inHandler(ctx context.Context, control *ServiceControl) {
	m.mu.Lock()
	if control.s.run == control && control.s.state != platform.Stopped {
		control.s.state = platform.StopPending
		control.stopOnce.Do(func() { close(control.stop) })
		m.notify()
	}
	m.mu.Unlock()
	_ = wait.For(ctx, handlerTime)
}

func (v machineView) ShuttingDown(ctx context.Context) (bool, error) {
	if err := v.p.checkContext(ctx); err != nil {
		return false, err
	}
	m := v.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boot != nil && m.boot.shuttingDown, nil
}
