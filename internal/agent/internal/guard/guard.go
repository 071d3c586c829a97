// Package guard runs the agent's executable as a one-shot service that owns one job from beginning to end: a swap's
// transaction, or a capture. Such a service continues after the end of the session that started it, is started again
// at the next boot, and removes itself when the job is done.
//
// Sessions register and start a guardian, check whether it is working, and start it again if it
// ended before its job was done. The guardian itself calls Remove as its last action. If a guardian
// ended without calling Remove, the next session that finds the guardian's registration removes the
// registration.
package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// endTimeout is how long a guardian may take to end, and how long its removal may take.
const endTimeout = 20 * time.Second

// Guardian is the guardian service for one purpose on one machine.
type Guardian struct {
	Services    platform.Services
	Service     string // the service's name in the SCM
	DisplayName string
	Description string
	Guards      string // the name of the guardian's job in errors, such as "the capture"
	// Executable and Argument make up the command line that runs the agent as this guardian:
	// `"EXECUTABLE" ARGUMENT ID`.
	Executable string
	Argument   string
	// Recovery is the SCM's reaction when the guardian is killed. If it is nil, the SCM starts the guardian again
	// only at the next boot.
	Recovery *platform.Recovery
	Poll     time.Duration // interval of polling the service's state
}

// startTries limits how often Start tries again because another session registered or removed a guardian at the same
// time.
const startTries = 10

// Start registers the guardian of id and starts it, after the guardian of another id has ended.
// Several sessions may call Start for one id at once: all use the registration that one of them
// made, and one guardian is working when the first call returns. Start ignores the error of a start
// if the guardian is working nevertheless, or if hasRun reports that the guardian has worked.
func (g Guardian) Start(ctx context.Context, id string, hasRun func() bool) (err error) {
	for range startTries {
		var retry bool
		if retry, err = g.start(ctx, id, hasRun); !retry {
			return err
		}
		if late := wait.For(ctx, g.Poll); late != nil {
			return errors.Join(err, late)
		}
	}
	return err
}

// start is one attempt of Start. The result `retry` is true if another session interfered, so that
// Start should try again.
func (g Guardian) start(ctx context.Context, id string, hasRun func() bool) (retry bool, err error) {
	config, err := g.Services.Config(ctx, g.Service)
	registered := err == nil && config.CommandLine == g.commandLine(id)
	if !registered {
		if err := g.AwaitRemoved(ctx); err != nil {
			return false, err
		}
		if err := g.register(ctx, id); err != nil {
			err = fmt.Errorf("register the service that guards %s: %w", g.Guards, err)
			if errors.Is(err, fault.ErrServiceExists) || errors.Is(err, fault.ErrServiceDeleting) {
				return true, err
			}
			return false, errors.Join(err, g.Remove(ctx))
		}
	}
	err = g.Services.Start(ctx, g.Service)
	if err == nil || errors.Is(err, fault.ErrServiceRunning) {
		return false, nil
	}
	if atWork, look := g.Running(ctx); look == nil && atWork || hasRun() {
		return false, nil
	}
	err = fmt.Errorf("start the service that guards %s: %w", g.Guards, err)
	if errors.Is(err, fault.ErrNoService) || errors.Is(err, fault.ErrServiceDeleting) {
		return true, err
	}
	return false, errors.Join(err, g.Remove(ctx))
}

func (g Guardian) commandLine(id string) string {
	return fmt.Sprintf(`"%s" %s %s`, g.Executable, g.Argument, id)
}

func (g Guardian) register(ctx context.Context, id string) error {
	return g.Services.Create(ctx, platform.ServiceConfig{
		Name:        g.Service,
		DisplayName: g.DisplayName,
		Description: g.Description,
		CommandLine: g.commandLine(id),
		StartType:   platform.StartAuto,
		Recovery:    g.Recovery,
	})
}

// Running reports whether a guardian is registered and has not ended.
func (g Guardian) Running(ctx context.Context) (bool, error) {
	status, err := g.Services.Status(ctx, g.Service)
	if errors.Is(err, fault.ErrNoService) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("query the service that guards %s: %w", g.Guards, err)
	}
	return status.State != platform.Stopped, nil
}

// AwaitRemoved waits until no guardian is registered. It removes the registration of a guardian that has ended. The
// caller must have made sure that this guardian's job is done, or that another guardian will take it over.
func (g Guardian) AwaitRemoved(ctx context.Context) error {
	return wait.Condition{
		Name:     fmt.Sprintf("the service that guarded %s to end", g.Guards),
		Interval: g.Poll,
		Limit:    endTimeout,
		Look: func(ctx context.Context) error {
			status, err := g.Services.Status(ctx, g.Service)
			if errors.Is(err, fault.ErrNoService) {
				return nil
			}
			if err == nil && status.State == platform.Stopped {
				err = g.unregister(ctx)
			}
			if err == nil {
				err = fmt.Errorf("it is %s", status.State)
			}
			return err
		},
	}.Wait(ctx)
}

// RemoveEnded removes the registration of a guardian that has ended and could not remove itself. It does not wait.
func (g Guardian) RemoveEnded(ctx context.Context) error {
	status, err := g.Services.Status(ctx, g.Service)
	switch {
	case errors.Is(err, fault.ErrNoService):
		return nil
	case err != nil:
		return err
	case status.State != platform.Stopped:
		return nil // a running guardian removes itself
	}
	return g.unregister(ctx)
}

// Remove deletes the registration, even if ctx has ended because the machine shuts down, and
// retries for endTimeout until the SCM accepts. A guardian calls Remove as its last action, and its
// process then ends. Start calls Remove to clean up after a failed start.
func (g Guardian) Remove(ctx context.Context) error {
	return wait.Condition{
		Name:     fmt.Sprintf("the service that guarded %s to be removed", g.Guards),
		Interval: g.Poll,
		Limit:    endTimeout,
		Look:     g.unregister,
	}.Wait(context.WithoutCancel(ctx))
}

func (g Guardian) unregister(ctx context.Context) error {
	err := g.Services.Delete(ctx, g.Service)
	if errors.Is(err, fault.ErrNoService) || errors.Is(err, fault.ErrServiceDeleting) {
		return nil
	}
	return err
}
