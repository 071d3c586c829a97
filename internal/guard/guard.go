// Package guard runs the agent's executable as a one-shot service that owns
// something from its beginning to its end: a swap's transaction, a capture. Such
// a service lives on when the session that asked for it is gone, is started again
// at the next boot, and removes itself when all is done.
//
// Sessions register and start it, look whether it is at work and start it again
// where it died; the guardian itself calls Remove as its last act. Whoever finds
// the registration of one that has ended without that takes it away.
package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/wait"
)

// gone is how long a guardian may take to end, or to be removed.
const gone = 20 * time.Second

// Guardian is the service of one purpose on one machine.
type Guardian struct {
	Services    host.Services
	Service     string // its name in the SCM
	DisplayName string
	Description string
	Guards      string // what it owns, in errors: "the capture"
	// Executable and Argument make the agent this guardian: `agent.exe ARGUMENT ID`.
	Executable string
	Argument   string
	// Recovery is what the SCM does when the guardian is killed; nil: nothing until
	// the next boot.
	Recovery *host.Recovery
	Poll     time.Duration // between two looks at it
}

// startTries bounds how often a registration is made anew that another session takes
// away meanwhile.
const startTries = 10

// Start registers the guardian of id and starts it, once one of another id has ended.
// Several sessions may call it for one id at once: the registration that one has made
// serves all, and one guardian is at work when the first of them returns. A start that
// is said to have failed is believed only if the guardian is not at work and, which
// hasRun tells, was not.
func (g Guardian) Start(ctx context.Context, id string, hasRun func() bool) (err error) {
	for range startTries {
		var again bool
		if again, err = g.start(ctx, id, hasRun); !again {
			return err
		}
		if late := wait.For(ctx, g.Poll); late != nil {
			return errors.Join(err, late)
		}
	}
	return err
}

// start is one attempt; again says that another session was in its way.
func (g Guardian) start(ctx context.Context, id string, hasRun func() bool) (again bool, err error) {
	config, err := g.Services.Config(ctx, g.Service)
	registered := err == nil && config.CommandLine == g.commandLine(id)
	if !registered {
		if err := g.AwaitRemoved(ctx); err != nil {
			return false, err
		}
		if err := g.register(ctx, id); err != nil {
			err = fmt.Errorf("register the service that guards %s: %w", g.Guards, err)
			if errors.Is(err, host.ErrServiceExists) || errors.Is(err, host.ErrServiceDeleting) {
				return true, err
			}
			return false, errors.Join(err, g.Remove(ctx))
		}
	}
	err = g.Services.Start(ctx, g.Service)
	if err == nil || errors.Is(err, host.ErrServiceRunning) {
		return false, nil
	}
	if atWork, look := g.AtWork(ctx); look == nil && atWork || hasRun() {
		return false, nil
	}
	err = fmt.Errorf("start the service that guards %s: %w", g.Guards, err)
	if errors.Is(err, host.ErrNoService) || errors.Is(err, host.ErrServiceDeleting) {
		return true, err
	}
	return false, errors.Join(err, g.Remove(ctx))
}

func (g Guardian) commandLine(id string) string {
	return fmt.Sprintf(`"%s" %s %s`, g.Executable, g.Argument, id)
}

func (g Guardian) register(ctx context.Context, id string) error {
	return g.Services.Create(ctx, host.ServiceConfig{
		Name:        g.Service,
		DisplayName: g.DisplayName,
		Description: g.Description,
		CommandLine: g.commandLine(id),
		StartType:   host.StartAuto,
		Recovery:    g.Recovery,
	})
}

// AtWork is whether a guardian is registered and has not ended.
func (g Guardian) AtWork(ctx context.Context) (bool, error) {
	status, err := g.Services.Status(ctx, g.Service)
	if errors.Is(err, host.ErrNoService) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the service that guards %s: %w", g.Guards, err)
	}
	return status.State != host.Stopped, nil
}

// AwaitRemoved waits until no guardian is registered. Of one that has ended it
// takes the registration away; the caller has made sure that what it owned is
// done, or is about to be another's.
func (g Guardian) AwaitRemoved(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, gone)
	defer cancel()
	for last := host.ServiceState(""); ; {
		status, err := g.Services.Status(ctx, g.Service)
		if errors.Is(err, host.ErrNoService) {
			return nil
		}
		if err == nil {
			last = status.State
		}
		if err == nil && last == host.Stopped {
			err = g.unregister(ctx)
		}
		if late := wait.For(ctx, g.Poll); late != nil {
			if err == nil || errors.Is(err, late) {
				err = late
			}
			return fmt.Errorf("wait for the service that guarded %s to end (it is %s): %w", g.Guards, last, err)
		}
	}
}

// RemoveEnded takes away the registration of a guardian that has ended and could
// not do so itself. It does not wait.
func (g Guardian) RemoveEnded(ctx context.Context) error {
	status, err := g.Services.Status(ctx, g.Service)
	if err != nil || status.State != host.Stopped {
		return nil // none, or one that is about to do it
	}
	return g.unregister(ctx)
}

// Remove takes the registration away, also while the machine shuts down, and goes on
// until the SCM has let it. It is the guardian's last act, whose process then ends by
// itself, and follows a start that failed.
func (g Guardian) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gone)
	defer cancel()
	for {
		err := g.unregister(ctx)
		if err == nil || wait.For(ctx, g.Poll) != nil {
			return err
		}
	}
}

func (g Guardian) unregister(ctx context.Context) error {
	err := g.Services.Delete(ctx, g.Service)
	if errors.Is(err, host.ErrNoService) || errors.Is(err, host.ErrServiceDeleting) {
		return nil
	}
	return err
}
