package selftest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/events"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// tryService makes a service, looks at it, stops it and starts it again.
func tryService(ctx context.Context, t *trial) error {
	status, err := t.serving(ctx)
	if err != nil {
		return err
	}
	if err := t.runs(ctx, status); err != nil {
		return err
	}
	_, err = t.node.Services.Create(ctx, serviceConfig())
	if err := expectError("making a service that exists", err, fault.ErrServiceExists); err != nil {
		return err
	}
	reply, err := t.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: strings.ToUpper(service)})
	if err != nil {
		return fmt.Errorf("find the service by its name in upper case: %w", err)
	}
	config := reply.GetConfig()
	t.answer("account", config.GetAccount())
	t.answer("start type", word.Of(config.GetStartType()))
	if err := expect("the service's command line", config.GetCommandLine(), serviceConfig().CommandLine); err != nil {
		return err
	}
	if err := t.stopped(ctx, status.GetPid()); err != nil {
		return err
	}
	_, err = t.node.Services.Stop(ctx, &agentv1.StopServiceRequest{Name: service})
	t.answer("stop of a stopped service fails", err != nil)
	if status, err = t.serving(ctx); err != nil {
		return fmt.Errorf("start the service again: %w", err)
	}
	return t.runs(ctx, status)
}

// runs checks that the service has a process of its own that runs our program.
func (t *trial) runs(ctx context.Context, status *agentv1.ServiceStatus) error {
	if status.GetState() != agentv1.ServiceState_SERVICE_STATE_RUNNING || status.GetPid() == 0 {
		return fmt.Errorf("the service is %s with process %d", word.Of(status.GetState()), status.GetPid())
	}
	process, err := t.find(ctx, func(p *agentv1.Process) bool { return p.GetPid() == status.GetPid() })
	if err != nil {
		return fmt.Errorf("find the service's process %d: %w", status.GetPid(), err)
	}
	if !strings.EqualFold(process.GetImage(), programPath) {
		return fmt.Errorf("the service's process runs %s, not %s", process.GetImage(), programPath)
	}
	return nil
}

// stopped stops the service and checks that its process is gone.
func (t *trial) stopped(ctx context.Context, pid uint32) error {
	_, err := t.node.Services.Stop(ctx, &agentv1.StopServiceRequest{Name: service,
		Timeout: durationpb.New(stopLimit)})
	if err != nil {
		return fmt.Errorf("stop the service: %w", err)
	}
	reply, err := t.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: service})
	if err != nil {
		return err
	}
	status := reply.GetStatus()
	if status.GetState() != agentv1.ServiceState_SERVICE_STATE_STOPPED {
		return fmt.Errorf("the stopped service is %s", word.Of(status.GetState()))
	}
	t.answer("exit code after a stop", int(status.GetExitCode()))
	gone, err := t.gone(ctx, func(p *agentv1.Process) bool {
		return p.GetPid() == pid && strings.EqualFold(p.GetImage(), programPath)
	})
	if err == nil && !gone {
		return errors.New("the service's process still runs after the service has stopped")
	}
	return err
}

// tryKill kills the service's process.
func tryKill(ctx context.Context, t *trial) error {
	status, err := t.serving(ctx)
	if err != nil {
		return err
	}
	if _, err := t.node.Processes.Kill(ctx, &agentv1.KillProcessRequest{Pid: status.GetPid()}); err != nil {
		return err
	}
	var after *agentv1.ServiceStatus
	err = wait.Condition{
		Name: "the Service Control Manager to notice that the process is gone", Interval: 50 * time.Millisecond,
		MaxInterval: time.Second, Limit: startLimit,
		Look: func(ctx context.Context) error {
			reply, err := t.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: service})
			if err != nil {
				return wait.Stop(err)
			}
			if after = reply.GetStatus(); after.GetState() != agentv1.ServiceState_SERVICE_STATE_STOPPED {
				return fmt.Errorf("the service is %s", word.Of(after.GetState()))
			}
			return nil
		},
	}.Wait(ctx)
	if err != nil {
		return err
	}
	t.answer("exit code after a kill", int(after.GetExitCode()))
	status, err = t.serving(ctx)
	if err != nil {
		return fmt.Errorf("start the service again: %w", err)
	}
	return t.runs(ctx, status)
}

// tryServiceLog reads the log of the service, of which only its command line has the path.
func tryServiceLog(ctx context.Context, t *trial) error {
	status, err := t.serving(ctx)
	if err != nil {
		return err
	}
	if err := t.stopped(ctx, status.GetPid()); err != nil {
		return err
	}
	file, lines, err := push.LogLines(ctx, t.node, service, 100)
	if err != nil {
		return err
	}
	if !strings.EqualFold(file, logPath) {
		return fmt.Errorf("the service's log is %s, not %s", file, logPath)
	}
	text := strings.Join(lines, "\n")
	started, stopped := strings.LastIndex(text, "started v"), strings.LastIndex(text, "stopped v")
	if started < 0 || stopped < started {
		return fmt.Errorf("the last lines of the service's log do not show its start and its stop: %q", lines)
	}
	return nil
}

// serviceInstalled is the event of the Service Control Manager about a new service.
const serviceInstalled = 7045

// eventLimit is how long Windows may take to write an event.
const eventLimit = 20 * time.Second

// tryServiceEvent looks for the event about our own service.
func tryServiceEvent(ctx context.Context, t *trial) error {
	before, err := t.events(ctx, "System", serviceInstalled)
	if err != nil {
		return err
	}
	if _, err := ourService().remove(ctx, t.node); err != nil {
		return err
	}
	if _, err := t.serving(ctx); err != nil {
		return err
	}
	var last uint64
	for _, e := range before {
		last = max(last, e.Record)
	}
	return wait.Condition{
		Name: "the event about the new service", Interval: 200 * time.Millisecond, MaxInterval: 2 * time.Second,
		Limit: eventLimit,
		Look: func(ctx context.Context) error {
			now, err := t.events(ctx, "System", serviceInstalled)
			if err != nil {
				return wait.Stop(err)
			}
			for _, e := range now {
				if e.Record > last && strings.Contains(fmt.Sprint(e.Data)+e.Message, service) {
					t.answer("provider", e.Provider)
					t.answer("level", e.Level)
					return nil
				}
			}
			return fmt.Errorf("the System log has no new event %d about the service", serviceInstalled)
		},
	}.Wait(ctx)
}

// events returns the last events of a channel, of these ids.
func (t *trial) events(ctx context.Context, channel string, ids ...int) (all []events.Event, err error) {
	reader, err := events.Open(ctx, t.node.Processes)
	var missing *events.NoEventLogError
	if errors.As(err, &missing) {
		return nil, impossible("the node has no event log")
	}
	if err != nil {
		return nil, err
	}
	channels, err := reader.Channels([]string{channel})
	if err != nil {
		return nil, err
	}
	for _, c := range channels {
		err := c.Read(ctx, events.Query{IDs: ids, Last: 50}, func(batch []events.Event, _ bool) error {
			all = append(all, batch...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
