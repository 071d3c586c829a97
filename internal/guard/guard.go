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

// Start registers the guardian of id and starts it, once an older one has ended.
// A start that is said to have failed is believed only if the guardian is not at
// work and, which hasRun tells, was not.
func (g Guardian) Start(ctx context.Context, id string, hasRun func() bool) error {
	if err := g.AwaitRemoved(ctx); err != nil {
		return err
	}
	if err := g.register(ctx, id); err != nil {
		err = fmt.Errorf("register the service that guards %s: %w", g.Guards, err)
		return errors.Join(err, g.unregister(context.WithoutCancel(ctx)))
	}
	err := g.Services.Start(ctx, g.Service)
	if err == nil {
		return nil
	}
	if atWork, look := g.AtWork(ctx); look == nil && atWork || hasRun() {
		return nil
	}
	err = fmt.Errorf("start the service that guards %s: %w", g.Guards, err)
	return errors.Join(err, g.unregister(context.WithoutCancel(ctx)))
}

func (g Guardian) register(ctx context.Context, id string) error {
	return g.Services.Create(ctx, host.ServiceConfig{
		Name:        g.Service,
		DisplayName: g.DisplayName,
		Description: g.Description,
		CommandLine: fmt.Sprintf(`"%s" %s %s`, g.Executable, g.Argument, id),
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

// Remove is the guardian's last act: it takes its own registration away, also
// while the machine shuts down. The process ends by itself.
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
