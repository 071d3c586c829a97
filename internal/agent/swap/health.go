package swap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// check waits until a started component has settled and is healthy.
func (t *transaction) check(ctx context.Context, c Component) error {
	if err := t.settle(ctx, c); err != nil {
		return err
	}
	return t.awaitHealthy(ctx, c)
}

// settle waits until the service has run with the same process for the component's settle time,
// counted from the start of the service. If a wrapper runs the component's program, the program too must
// have run for that time.
func (t *transaction) settle(ctx context.Context, c Component) error {
	started, err := t.runningSince(ctx, c.Service)
	if err != nil {
		return err
	}
	behind, err := t.wrappedProgram(ctx, c)
	if err != nil {
		return err
	}
	since := started.at
	return wait.Condition{
		Name:     fmt.Sprintf("service %s to settle", c.Service),
		Interval: pollInterval,
		Look: func(ctx context.Context) error {
			if err := t.stillRuns(ctx, c, started); err != nil {
				return wait.Stop(err)
			}
			if behind != nil {
				if since, err = behind.since(ctx, t, c, started); err != nil {
					return err
				}
			}
			if age := time.Since(since); age < c.Settle {
				return fmt.Errorf("it has run for %s of %s", age.Round(10*time.Millisecond), c.Settle)
			}
			return nil
		},
	}.Wait(ctx)
}

// stillRuns returns an error if a component's service does not run with the process
// that was started.
func (t *transaction) stillRuns(ctx context.Context, c Component, started startedService) error {
	status, err := t.Platform.Services.Status(ctx, c.Service)
	if err != nil {
		return fmt.Errorf("query service %s: %w", c.Service, err)
	}
	if status.State != platform.Running {
		return fmt.Errorf("service %s ended within %s of its start: %s",
			c.Service, max(time.Since(started.at), c.Settle).Round(10*time.Millisecond), describeExit(status))
	}
	if status.PID != started.pid {
		return fmt.Errorf("service %s ended after its start and was restarted: its process was %d and is %d",
			c.Service, started.pid, status.PID)
	}
	return nil
}

// runningSince returns the time at which this guardian started the service, and the service's
// process. If another guardian started the service, the returned time is the time of this
// guardian's first query.
func (t *transaction) runningSince(ctx context.Context, service string) (startedService, error) {
	key := strings.ToLower(service)
	if s, ok := t.started[key]; ok {
		return s, nil
	}
	status, err := t.Platform.Services.Status(ctx, service)
	if err != nil {
		return startedService{}, fmt.Errorf("query service %s: %w", service, err)
	}
	t.started[key] = startedService{pid: status.PID, at: time.Now()}
	return t.started[key], nil
}

func (t *transaction) startedAt(service string) (startedService, bool) {
	s, ok := t.started[strings.ToLower(service)]
	return s, ok
}

// awaitHealthy waits until the component's health check passes. If the check failed before the swap
// too, awaitHealthy does not wait. If the service ends during the wait, awaitHealthy returns an
// error at once.
func (t *transaction) awaitHealthy(ctx context.Context, c Component) error {
	if c.Health.empty() || t.unhealthyBefore(c) != "" {
		t.markHealthy(c)
		return nil
	}
	err := wait.Condition{
		Name:     c.Name + " to be healthy",
		Interval: pollInterval,
		Limit:    c.Health.Timeout,
		Look: func(ctx context.Context) error {
			err := probe(ctx, t.Platform.Network, c.Health)
			if err == nil {
				t.markHealthy(c)
				return nil
			}
			status, statusErr := t.Platform.Services.Status(ctx, c.Service)
			if statusErr == nil && status.State != platform.Running {
				return wait.Stop(fmt.Errorf("service %s ended before it was healthy: %s", c.Service,
					describeExit(status)))
			}
			return err
		},
	}.Wait(ctx)
	if late := (*wait.Error)(nil); errors.As(err, &late) { // the caller names the component
		return fmt.Errorf("not healthy after %s: %w", c.Health.Timeout, late.Last)
	}
	return err
}

func (t *transaction) markHealthy(c Component) {
	if _, ok := t.healthy[c.Name]; !ok {
		t.healthy[c.Name] = time.Now()
	}
}

// unhealthyBefore returns a note if a component's check failed before the transaction, and "" if
// it did not.
func (t *transaction) unhealthyBefore(c Component) string {
	if b := t.journal.before(); b != nil && containsFold(b.Unhealthy, c.Name) {
		return "its health check failed before the swap too, so swdt did not wait for it to pass"
	}
	return ""
}

// probeTimeout limits one attempt of a health check.
const probeTimeout = 3 * time.Second

// probe tries a health check once.
func probe(ctx context.Context, network platform.Network, h Health) error {
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

// describeExit describes how a service's process ended.
func describeExit(s platform.ServiceStatus) string {
	const serviceSpecific = 1066
	if s.State == platform.Paused { // it has no exit code
		return "it is paused, as nssm pauses a service whose program ended soon after its start"
	}
	code := fmt.Sprintf("exit code %d", s.ExitCode)
	if s.ExitCode == serviceSpecific {
		code = fmt.Sprintf("its own exit code %d", s.SpecificExitCode)
	}
	if meaning, ok := exitMeanings()[s.ExitCode]; ok {
		code += " (" + meaning + ")"
	}
	return fmt.Sprintf("it is %s, %s", s.State, code)
}

// exitMeanings returns the meanings of the Win32 errors that the SCM most often
// stores for a service.
func exitMeanings() map[uint32]string {
	return map[uint32]string{
		0:    "ended on its own without an error",
		2:    "file not found",
		5:    "access denied",
		193:  "not a valid Windows program",
		216:  "built for another machine type",
		1053: "did not answer the start request in time",
		1067: "the process ended unexpectedly",
		1068: "a service it depends on did not start",
	}
}
