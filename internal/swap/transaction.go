package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/scm"
)

// transaction is one at work, in the guardian's process.
type transaction struct {
	Machine
	journal *journal
	plan    Plan
	started map[string]startedService // by lower-case name, as this process saw it
	healthy map[string]time.Time      // by component name
	planted int                       // files of other accounts that were set aside
}

// startedService is a service that this process started.
type startedService struct {
	pid uint32
	at  time.Time
}

// failure is why a transaction is undone, and whose fault it was.
type failure struct {
	component string
	err       error
	logLines  []string
}

func (f *failure) Error() string {
	if f.component == "" {
		return f.err.Error()
	}
	return f.component + ": " + f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// run brings the transaction to its end from wherever the journal says it is.
// An error means that it is not at its end: the journal stays unfinished.
func (t *transaction) run(ctx context.Context) error {
	err := t.proceed(ctx)
	switch {
	case ctx.Err() != nil: // a shutdown: the next guardian reads on from here
		return ctx.Err()
	case err != nil:
		err = t.rollBack(ctx, asFailure(err))
	default: // from here on, there is nothing to go back to
		err = t.commit(ctx)
	}
	if err != nil {
		return errors.Join(err, t.note(GaveUp, "", "%v", err))
	}
	return nil
}

func asFailure(err error) *failure {
	if failed, ok := errors.AsType[*failure](err); ok {
		return failed
	}
	return &failure{err: err}
}

// proceed does what is left of the way to the commit. An error is the reason to
// undo it.
func (t *transaction) proceed(ctx context.Context) error {
	if err := t.resume(ctx); err != nil {
		return err
	}
	if !t.journal.reached(Swapped) {
		if err := t.stopServices(ctx); err != nil {
			return err
		}
		if err := t.swapFiles(ctx); err != nil {
			return err
		}
	}
	if t.journal.reached(Committing) {
		return nil
	}
	if err := t.startServices(ctx); err != nil {
		return err
	}
	if err := t.checkServices(ctx); err != nil {
		return err
	}
	return t.note(Committing, "", "")
}

// resume decides what another guardian's unfinished work comes to. An error is
// the reason to undo it.
func (t *transaction) resume(ctx context.Context) error {
	if rebooted, err := t.rebooted(ctx); err != nil || len(t.journal.records) == 1 && !rebooted {
		return err // the first guardian of this transaction
	}
	last := t.journal.records[len(t.journal.records)-1]
	if err := t.note(Resumed, "", "after %s", last.State); err != nil {
		return err
	}
	if r, ok := t.journal.last(RollingBack); ok {
		return &failure{component: r.Component, err: errors.New(r.Message)}
	}
	if !t.journal.reached(Swapped) {
		return &failure{err: fmt.Errorf("interrupted while %s", doing(last))}
	}
	if !t.journal.reached(Committing) && t.journal.count(Resumed) > maxResumes {
		return &failure{err: fmt.Errorf("interrupted %d times, last while %s", maxResumes, doing(last))}
	}
	return t.verifySwapped(ctx)
}

// verifySwapped makes sure that the new binaries stand where the journal says
// they do: an undo on a full disk may have left no record of itself.
func (t *transaction) verifySwapped(ctx context.Context) error {
	hashes := hashcache.Load(t.Host.Files)
	for _, c := range t.plan.Components {
		if !c.swaps() {
			continue
		}
		if current, err := hashOrNothing(ctx, hashes, c.Destination); err != nil || current != c.SHA256 {
			return &failure{component: c.Name, err: errors.Join(errors.New("interrupted, and the new binary is no longer in place"), err)}
		}
	}
	return nil
}

// rebooted is whether the machine has started anew since the transaction was
// prepared. What runs then is what the SCM has come to, not what ran before.
func (t *transaction) rebooted(ctx context.Context) (bool, error) {
	facts, err := t.Host.Machine.Facts(ctx)
	if err != nil {
		return false, fmt.Errorf("ask for the boot id: %w", err)
	}
	return facts.BootID != t.journal.records[0].Boot, nil
}

func doing(r record) string {
	return strings.TrimSpace(string(r.State) + " " + r.Component)
}

func (t *transaction) note(s State, component, format string, args ...any) error {
	return t.journal.append(record{State: s, Component: component, Message: fmt.Sprintf(format, args...)})
}

// stopServices stops what runs of the components' services and of the services
// that depend on them, dependents first.
func (t *transaction) stopServices(ctx context.Context) error {
	before, err := t.observe(ctx)
	if err != nil {
		return err
	}
	first := record{State: Stopping, Before: before, Message: "services to stop: " + orNone(before.Running)}
	if err := t.journal.append(first); err != nil {
		return err
	}
	if err := t.stopAll(ctx, before.Running); err != nil {
		// The SCM may have restarted a dependent whose process had to be ended.
		return t.stopAll(ctx, before.Running)
	}
	return nil
}

func (t *transaction) stopAll(ctx context.Context, services []string) error {
	for _, name := range services {
		if err := t.note(Stopping, name, ""); err != nil {
			return err
		}
		if err := t.stop(ctx, name); err != nil {
			return &failure{t.componentOf(name), err, t.logLines(ctx, name)}
		}
	}
	return nil
}

// observe notes down what must be restored.
func (t *transaction) observe(ctx context.Context) (*before, error) {
	running, err := stopOrder(ctx, t.Host, t.plan.Components)
	if err != nil {
		return nil, err
	}
	b := &before{Running: running, CommandLines: map[string]string{}, LogSizes: t.logSizes(ctx, running), Old: map[string]host.FileID{}}
	for _, c := range t.plan.Components {
		if info, err := t.Host.Files.Stat(c.Destination); err == nil && c.swaps() {
			b.Old[c.Name] = info.ID
		}
		if c.CommandLine != "" {
			config, err := t.Host.Services.Config(ctx, c.Service)
			if err != nil {
				return nil, &failure{c.Name, fmt.Errorf("read the registration of service %s: %w", c.Service, err), nil}
			}
			b.CommandLines[c.Service] = config.CommandLine
		}
		if !c.Health.empty() && containsFold(running, c.Service) && probe(ctx, t.Host.Network, c.Health) != nil {
			b.Unhealthy = append(b.Unhealthy, c.Name)
		}
	}
	return b, nil
}

// stop stops one service and waits until its process, and whatever of the
// components' binaries it had started, is gone.
func (t *transaction) stop(ctx context.Context, service string) error {
	timeout := t.stopTimeout(service)
	children, err := t.pinChildren(ctx, service)
	if err != nil {
		return err
	}
	defer children.close()
	if _, err := scm.StopOne(ctx, t.Host, service, scm.StopOptions{Timeout: timeout, Kill: true}); err != nil {
		return err
	}
	return children.end(ctx, timeout)
}

func (t *transaction) stopTimeout(service string) time.Duration {
	if c, ok := t.component(service); ok {
		return c.StopTimeout
	}
	return DefaultStopTimeout
}

// swapFiles renames every old binary aside and every new one into place.
func (t *transaction) swapFiles(ctx context.Context) error {
	for _, c := range t.plan.Components {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.note(Swapping, c.Name, ""); err != nil {
			return err
		}
		if err := t.swap(ctx, c); err != nil {
			return &failure{c.Name, err, nil}
		}
	}
	return t.note(Swapped, "", "")
}

func (t *transaction) swap(ctx context.Context, c Component) error {
	if c.swaps() {
		t.dress(c)
		if !c.creates() {
			if err := t.take(ctx, c, c.Destination, c.undo()); err != nil {
				return fmt.Errorf("set the old binary aside: %w", err)
			}
		}
		if err := t.take(ctx, c, c.Staged, c.Destination); err != nil {
			return fmt.Errorf("put the new binary in place: %w", err)
		}
	}
	if c.CommandLine != "" {
		if err := t.setCommandLine(ctx, c.Service, c.CommandLine); err != nil {
			return err
		}
	}
	return nil
}

// take renames a file to a name that is free, as Begin and the step before have made
// sure: what has it all the same another account put there, and is set aside.
func (t *transaction) take(ctx context.Context, c Component, from, to string) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		err := t.rename(ctx, from, to)
		if !errors.Is(err, host.ErrExist) || attempt == attempts {
			return err
		}
		if err := t.setPlantedAside(c, to); err != nil {
			return err
		}
	}
}

// setPlantedAside moves what another account put at a path out of the way.
func (t *transaction) setPlantedAside(c Component, path string) error {
	t.planted++
	return setAside(t.Host.Files, path, layout.Aside(c.Destination, fmt.Sprintf("%s-planted-%d-%d", t.journal.id, len(t.journal.records), t.planted)))
}

// rename is patient with whoever has the file open for a moment: a virus scanner
// looks at an executable when it is new and when a program that it ran has ended.
func (t *transaction) rename(ctx context.Context, from, to string) error {
	busy := func(err error) bool { return errors.Is(err, host.ErrInUse) || errors.Is(err, host.ErrPermission) }
	return retryWhile(ctx, busy, func() error { return t.Host.Files.Rename(from, to, false) })
}

func (t *transaction) setCommandLine(ctx context.Context, service, commandLine string) error {
	err := t.Host.Services.Configure(ctx, host.ServiceConfig{Name: service, CommandLine: commandLine})
	if err != nil {
		return fmt.Errorf("change the command line of service %s: %w", service, err)
	}
	return nil
}

func (t *transaction) component(service string) (Component, bool) {
	for _, c := range t.plan.Components {
		if c.Service != "" && strings.EqualFold(c.Service, service) {
			return c, true
		}
	}
	return Component{}, false
}

// componentOf names the component of a service; the service itself where it is
// not in the plan.
func (t *transaction) componentOf(service string) string {
	if c, ok := t.component(service); ok {
		return c.Name
	}
	return service
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
