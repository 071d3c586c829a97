package swap

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cri"
	"github.com/swdt-dev/swdt/internal/host"
)

// check waits until a started component has settled and is healthy.
func (t *transaction) check(ctx context.Context, c Component) error {
	if err := t.settle(ctx, c); err != nil {
		return err
	}
	return t.awaitHealthy(ctx, c)
}

// settle waits until the service has run with the same process for the settle
// time, counted from its start.
func (t *transaction) settle(ctx context.Context, c Component) error {
	started, err := t.runningSince(ctx, c.Service)
	if err != nil {
		return err
	}
	for {
		status, err := t.Host.Services.Status(ctx, c.Service)
		if err != nil {
			return fmt.Errorf("look at service %s: %w", c.Service, err)
		}
		if status.State != host.Running {
			return fmt.Errorf("service %s ended within %s of its start: %s",
				c.Service, max(time.Since(started.at), c.Settle).Round(10*time.Millisecond), describeExit(status))
		}
		if status.PID != started.pid {
			return fmt.Errorf("service %s ended after its start and was restarted: its process was %d and is %d",
				c.Service, started.pid, status.PID)
		}
		if time.Since(started.at) >= c.Settle {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// runningSince is when this process started the service. A guardian that took
// over counts from when it looked first.
func (t *transaction) runningSince(ctx context.Context, service string) (startedService, error) {
	key := strings.ToLower(service)
	if s, ok := t.started[key]; ok {
		return s, nil
	}
	status, err := t.Host.Services.Status(ctx, service)
	if err != nil {
		return startedService{}, fmt.Errorf("look at service %s: %w", service, err)
	}
	t.started[key] = startedService{pid: status.PID, at: time.Now()}
	return t.started[key], nil
}

func (t *transaction) startedAt(service string) (startedService, bool) {
	s, ok := t.started[strings.ToLower(service)]
	return s, ok
}

// awaitHealthy waits for the component's health check, which must pass if it
// passed before the swap. A service that ends meanwhile is not waited for.
func (t *transaction) awaitHealthy(ctx context.Context, c Component) error {
	if c.Health.empty() || t.unhealthyBefore(c) != "" {
		t.markHealthy(c)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.Health.Timeout)
	defer cancel()
	for {
		err := probe(ctx, t.Host.Network, c.Health)
		if err == nil {
			t.markHealthy(c)
			return nil
		}
		status, statusErr := t.Host.Services.Status(ctx, c.Service)
		if statusErr == nil && status.State != host.Running {
			return fmt.Errorf("service %s ended before it was healthy: %s", c.Service, describeExit(status))
		}
		if pause(ctx) != nil {
			return fmt.Errorf("not healthy after %s: %w", c.Health.Timeout, err)
		}
	}
}

func (t *transaction) markHealthy(c Component) {
	if _, ok := t.healthy[c.Name]; !ok {
		t.healthy[c.Name] = time.Now()
	}
}

// unhealthyBefore says that a component's check failed before anything was
// touched; empty if it did not.
func (t *transaction) unhealthyBefore(c Component) string {
	if b := t.journal.before(); b != nil && containsFold(b.Unhealthy, c.Name) {
		return "its health check failed before the swap too, so it was not waited for"
	}
	return ""
}

// probeTimeout bounds one try.
const probeTimeout = 3 * time.Second

// probe tries a health check once.
func probe(ctx context.Context, network host.Network, h Health) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if h.HTTPGet != "" {
		status, body, err := network.HTTPGet(ctx, h.HTTPGet)
		if err != nil {
			return fmt.Errorf("GET %s: %w", withoutUser(h.HTTPGet), err)
		}
		if status < 200 || status > 299 {
			return fmt.Errorf("GET %s: answered %d %s", withoutUser(h.HTTPGet), status, firstLine(body))
		}
	}
	if h.CRIPipe != "" {
		dial := func(ctx context.Context) (net.Conn, error) { return network.DialPipe(ctx, h.CRIPipe) }
		if _, err := cri.Version(ctx, dial); err != nil {
			return fmt.Errorf("CRI Version on %s: %w", h.CRIPipe, err)
		}
	}
	return nil
}

func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the health check's URL"
	}
	return u.Redacted()
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line[:min(len(line), 200)]
}

// describeExit says in words how a service's process ended.
func describeExit(s host.ServiceStatus) string {
	const serviceSpecific = 1066
	code := fmt.Sprintf("exit code %d", s.ExitCode)
	if s.ExitCode == serviceSpecific {
		code = fmt.Sprintf("its own exit code %d", s.SpecificExitCode)
	}
	if meaning, ok := exitMeanings()[s.ExitCode]; ok {
		code += " (" + meaning + ")"
	}
	return fmt.Sprintf("it is %s, %s", s.State, code)
}

// exitMeanings are the Win32 errors that the SCM stores for a service.
func exitMeanings() map[uint32]string {
	return map[uint32]string{
		0:    "ended by itself without an error",
		2:    "file not found",
		5:    "access denied",
		193:  "not a valid Windows program",
		216:  "built for another machine type",
		1053: "did not answer the start request in time",
		1067: "the process ended unexpectedly",
		1068: "a service it depends on did not start",
	}
}
