// Package guard runs the agent's executable as a one-shot service that owns one job from beginning to end: a swap's
// transaction, or a capture. Such a service continues after the end of the session that started it, is started again
// at the next boot, and removes itself when the job is done.
//
// Sessions register and start a guardian, check whether it is working, and start it again if it
// ended before its job was done. The guardian itself calls Remove as its last action. If a guardian
// ended without calling Remove, the next session that finds the guardian's registration removes the
// registration.
//
// Windows keeps a deleted service while another program has a handle to it. Such a registration can neither start nor
// be used again, so it counts as removed, and the next guardian takes another of layout.ServiceNames.
package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/scm"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// endTimeout is how long a guardian may take to end, and how long its removal may take.
const endTimeout = 20 * time.Second

// Guardian is the guardian service for one purpose on one machine.
type Guardian struct {
	Services    platform.Services
	Service     string // the first of the service's names in the SCM
	DisplayName string // that of a further name has the same suffix as the name
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
	name, others := g.registered(ctx, id)
	if name == "" {
		if others {
			if err := g.AwaitRemoved(ctx); err != nil {
				return false, err
			}
		}
		if name, err = g.register(ctx, id); err != nil {
			err = fmt.Errorf("register the service that guards %s: %w", g.Guards, err)
			if errors.Is(err, fault.ErrServiceExists) || errors.Is(err, fault.ErrServiceDeleting) {
				return true, err
			}
			return false, errors.Join(err, g.Remove(ctx))
		}
	}
	err = scm.Request(ctx, g.Services, name)
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

// registered returns the name of the service that guards id ("": none), and otherwise reports whether a service guards
// something else.
func (g Guardian) registered(ctx context.Context, id string) (name string, others bool) {
	for _, name := range layout.ServiceNames(g.Service) {
		config, err := g.Services.Config(ctx, name)
		if err == nil && config.CommandLine == g.commandLine(id) {
			return name, false
		}
		others = others || !errors.Is(err, fault.ErrNoService)
	}
	return "", others
}

// register registers a guardian with the first name that no deleted service has.
func (g Guardian) register(ctx context.Context, id string) (name string, err error) {
	for _, name = range layout.ServiceNames(g.Service) {
		// The SCM refuses a display name that another service has, and a deleted service still has its own.
		shown := g.DisplayName + strings.TrimPrefix(name, g.Service)
		err = g.Services.Create(ctx, platform.ServiceConfig{
			Name:        name,
			DisplayName: shown,
			Description: g.Description,
			CommandLine: g.commandLine(id),
			StartType:   platform.StartAuto,
			Recovery:    g.Recovery,
		})
		if err == nil { // the guardian must be there after a power cut
			return name, g.Services.Flush(ctx)
		}
		if !errors.Is(err, fault.ErrServiceDeleting) {
			return name, err
		}
	}
	return "", fmt.Errorf("%w: programs such as services.msc have handles to all %d services of this name; close them",
		err, len(layout.ServiceNames(g.Service)))
}

// Running reports whether a guardian is registered and has not ended.
func (g Guardian) Running(ctx context.Context) (bool, error) {
	for _, name := range layout.ServiceNames(g.Service) {
		status, err := g.Services.Status(ctx, name)
		switch {
		case errors.Is(err, fault.ErrNoService):
		case err != nil:
			return false, fmt.Errorf("query the service that guards %s: %w", g.Guards, err)
		case status.State != platform.Stopped:
			return true, nil
		}
	}
	return false, nil
}

// AwaitRemoved waits until no guardian is registered. It removes the registration of a guardian that has ended. The
// caller must have made sure that this guardian's job is done, or that another guardian will take it over.
func (g Guardian) AwaitRemoved(ctx context.Context) error {
	return wait.Condition{
		Name:     fmt.Sprintf("the service that guarded %s to end", g.Guards),
		Interval: g.Poll,
		Limit:    endTimeout,
		Look: func(ctx context.Context) error {
			for _, name := range layout.ServiceNames(g.Service) {
				status, err := g.Services.Status(ctx, name)
				switch {
				case errors.Is(err, fault.ErrNoService):
				case err != nil:
					return err
				case status.State != platform.Stopped:
					return fmt.Errorf("it is %s", status.State)
				default:
					if err := g.unregister(ctx, name); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}.Wait(ctx)
}

// RemoveEnded removes the registration of a guardian that has ended and could not remove itself. It does not wait.
func (g Guardian) RemoveEnded(ctx context.Context) error {
	for _, name := range layout.ServiceNames(g.Service) {
		status, err := g.Services.Status(ctx, name)
		if err == nil && status.State == platform.Stopped { // a running guardian removes itself
			err = g.unregister(ctx, name)
		}
		if err != nil && !errors.Is(err, fault.ErrNoService) {
			return err
		}
	}
	return nil
}

// Remove deletes the registration, even if ctx has ended because the machine shuts down, and
// retries for endTimeout until the SCM accepts. A guardian calls Remove as its last action, and its
// process then ends. Start calls Remove to clean up after a failed start.
func (g Guardian) Remove(ctx context.Context) error {
	return wait.Condition{
		Name:     fmt.Sprintf("the service that guarded %s to be removed", g.Guards),
		Interval: g.Poll,
		Limit:    endTimeout,
		Look: func(ctx context.Context) error {
			for _, name := range layout.ServiceNames(g.Service) {
				if _, err := g.Services.Status(ctx, name); errors.Is(err, fault.ErrNoService) {
					continue
				}
				if err := g.unregister(ctx, name); err != nil {
					return err
				}
			}
			return nil
		},
	}.Wait(context.WithoutCancel(ctx))
}

func (g Guardian) unregister(ctx context.Context, name string) error {
	err := g.Services.Delete(ctx, name)
	if errors.Is(err, fault.ErrNoService) || errors.Is(err, fault.ErrServiceDeleting) {
		return nil
	}
	return err
}
