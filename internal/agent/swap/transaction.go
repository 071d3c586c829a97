package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/agent/internal/scm"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// transaction is a transaction in progress, in the guardian's process.
type transaction struct {
	Machine
	journal  *journal
	plan     Plan
	started  map[string]startedService // processes of the started services, by lower-case service name
	healthy  map[string]time.Time      // by component name
	versions *versions                 // nil: not asked yet
	planted  int                       // number of other accounts' files that were set aside
}

// startedService is the process of a running service. The field `at` is the time at which this
// guardian started the service. If another guardian started the service, it is the time at which
// this guardian first found it running.
type startedService struct {
	pid uint32
	at  time.Time
}

// failure is the reason for an undo, and the component or service that caused it.
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

// run finishes the transaction from the state in its journal. If it returns an error, the
// transaction is unfinished, and the journal shows this.
func (t *transaction) run(ctx context.Context) error {
	err := t.proceed(ctx)
	switch {
	case ctx.Err() != nil, err != nil && t.ends(ctx): // a shutdown: the next guardian continues here
		return ctx.Err()
	case err != nil:
		err = t.rollBack(ctx, asFailure(err))
	default: // after this point there is no undo
		err = t.commit(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
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

// proceed performs the remaining steps up to the commit. If it returns an error, the caller undoes
// the completed steps.
func (t *transaction) proceed(ctx context.Context) error {
	if err := t.resume(ctx); err != nil {
		return err
	}
	if !t.journal.reached(Swapped) {
		if err := t.awaitFiles(ctx); err != nil {
			return err
		}
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
	t.askVersions(ctx) // not before the services run: an unknown program may use what they need
	if err := t.checkServices(ctx); err != nil {
		return err
	}
	return t.note(Committing, "", "")
}

// resume decides how to continue another guardian's unfinished work. If it returns an error, the caller undoes the
// work.
func (t *transaction) resume(ctx context.Context) error {
	if len(t.journal.records) == 1 { // only the plan is recorded
		if rebooted, err := t.rebooted(ctx); err != nil || !rebooted {
			return err // this is the first guardian of the transaction
		}
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
	// Every guardian except this one was interrupted: the first guardian, and each guardian that
	// resumed the transaction before this one.
	interrupted := t.journal.count(Resumed)
	if !t.journal.reached(Committing) && interrupted > maxResumes {
		return &failure{err: fmt.Errorf("interrupted %d times, last while %s", interrupted, doing(last))}
	}
	return t.verifySwapped(ctx)
}

// verifySwapped makes sure that the new binaries are in place, as the journal records. The binaries
// may be out of place: an undo on a full disk may have left no record of itself.
func (t *transaction) verifySwapped(ctx context.Context) error {
	for _, c := range t.plan.Components {
		if !c.swaps() {
			continue
		}
		if current, err := hashOrNothing(ctx, t.Hashes, c.Destination); err != nil || current != c.SHA256 {
			return &failure{component: c.Name, err: errors.Join(
				errors.New("interrupted, and the new binary is no longer in place"), err)}
		}
	}
	return t.setCommandLines(ctx)
}

// rebooted reports whether the machine has restarted since the transaction was prepared. If it has,
// the SCM has decided at the restart which services run, so the state before the restart no longer
// counts.
func (t *transaction) rebooted(ctx context.Context) (bool, error) {
	facts, err := t.Platform.Machine.Facts(ctx)
	if err != nil {
		return false, fmt.Errorf("read the boot id: %w", err)
	}
	return facts.BootID != t.journal.records[0].Boot, nil
}

func doing(r record) string {
	return strings.TrimSpace(string(r.State) + " " + r.Component)
}

func (t *transaction) note(s State, component, format string, args ...any) error {
	return t.journal.append(record{State: s, Component: component, Message: fmt.Sprintf(format, args...)})
}

// stopServices stops the running services of the components and all their dependents, dependents first.
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
		// The SCM may have restarted a dependent after its process was killed.
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

// observe returns the state that an undo must restore.
func (t *transaction) observe(ctx context.Context) (*before, error) {
	running, err := stopOrder(ctx, t.Platform, t.plan.Components)
	if err != nil {
		return nil, err
	}
	b := &before{Running: running, CommandLines: map[string]string{}, Old: map[string]platform.FileID{}}
	b.LogSizes, b.Logs = t.logSizes(ctx, running)
	for _, c := range t.plan.Components {
		if info, err := t.Platform.Files.Stat(c.Destination); err == nil && c.swaps() {
			b.Old[c.Name] = info.ID
		}
		if c.CommandLine != "" {
			config, err := t.Platform.Services.Config(ctx, c.Service)
			if err != nil {
				return nil, &failure{c.Name, fmt.Errorf("read the registration of service %s: %w", c.Service, err), nil}
			}
			b.CommandLines[c.Service] = config.CommandLine
		}
		if !c.Health.empty() && containsFold(running, c.Service) && probe(ctx, t.Platform.Network, c.Health) != nil {
			b.Unhealthy = append(b.Unhealthy, c.Name)
		}
	}
	return b, nil
}

// stop stops one service. It waits until the service's process has ended, and until every process
// that the service started from a component's binary has ended.
func (t *transaction) stop(ctx context.Context, service string) error {
	timeout := t.stopTimeout(service)
	children, err := t.pinChildren(ctx, service)
	if err != nil {
		return err
	}
	defer children.close()
	if _, err := scm.StopOne(ctx, t.Platform, service, scm.StopOptions{Timeout: timeout, Kill: true}); err != nil {
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

// swapFiles renames every old binary aside and every new one into place, and sets the new command
// lines.
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

// setCommandLines sets the new command lines again. Windows writes the registry to the disk some time after a change:
// a power cut can keep the new binary and lose the command line that belongs to it.
func (t *transaction) setCommandLines(ctx context.Context) error {
	for _, c := range t.plan.Components {
		if c.CommandLine == "" {
			continue
		}
		if err := t.setCommandLine(ctx, c.Service, c.CommandLine); err != nil {
			return &failure{component: c.Name, err: err}
		}
	}
	return nil
}

func (t *transaction) swap(ctx context.Context, c Component) error {
	if c.swaps() {
		t.setAccess(c)
		if !c.creates() {
			if err := t.renameToFree(ctx, c, c.Destination, c.undo()); err != nil {
				return fmt.Errorf("set the old binary aside: %w", err)
			}
		}
		if err := t.renameToFree(ctx, c, c.Staged, c.Destination); err != nil {
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

// renameToFree renames a file to a name that Begin and the previous steps have made free. If a file
// has the new name nevertheless, another account put this file there, and renameToFree sets it
// aside.
func (t *transaction) renameToFree(ctx context.Context, c Component, from, to string) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		err := t.patience(c, patience.Short).Rename(ctx, from, to, false)
		if !errors.Is(err, fault.ErrExist) || attempt == attempts {
			return err
		}
		if err := t.setPlantedAside(ctx, c, to); err != nil {
			return err
		}
	}
}

// setPlantedAside sets aside a file that another account put at path.
func (t *transaction) setPlantedAside(ctx context.Context, c Component, path string) error {
	t.planted++
	return setAsidePatiently(ctx, t.patience(c, patience.Short), path,
		layout.Aside(c.Destination, fmt.Sprintf("%s-planted-%d-%d", t.journal.id, len(t.journal.records), t.planted)))
}

func (t *transaction) setCommandLine(ctx context.Context, service, commandLine string) error {
	err := t.Platform.Services.Configure(ctx, platform.ServiceConfig{Name: service, CommandLine: commandLine})
	if err == nil {
		err = t.Platform.Services.Flush(ctx) // the names of the files are on the disk already
	}
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

// componentOf returns the name of the component that a service belongs to. If the plan has no such
// component, it returns the name of the service.
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
