package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// The pauses between two rounds of an undo. Each is twice as long as the one before it.
const (
	firstUndoPause   = 100 * time.Millisecond
	longestUndoPause = 5 * time.Second
)

// mostNews bounds how often an undo records that it waits: the journal stays small.
const mostNews = 20

// undoing is an undo that proceeds in rounds. In each round it restores what it can, and starts the services whose
// binaries are in place: one held file keeps only the services down that need it.
type undoing struct {
	*transaction
	restored map[string]time.Time // when a component's old binary and command line were in place, by its destination
	back     map[string]bool      // the services that run again, by lower-case name
	news     []string
}

// round makes one attempt to restore all components. Its error is about those that it could not restore.
func (u *undoing) round(ctx context.Context) error {
	var errs []error
	stopped := u.stopAgain(ctx, &errs)
	for _, c := range u.plan.Components {
		if _, done := u.restored[c.Destination]; done || !stopped(c) {
			continue
		}
		if err := u.restore(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("restore the old %s: %w", c.Name, err))
			continue
		}
		u.restored[c.Destination] = time.Now()
	}
	u.startEach(ctx)
	if len(u.restored) == len(u.plan.Components) {
		return nil
	}
	err := errors.Join(errs...)
	u.report(err)
	return err
}

// stopAgain stops the services that this transaction may have started from a new binary. If no swap of a file has
// begun, it stops no service, since no binary has changed. At a boot, the SCM may start one of the services from its
// new binary at any moment, so each round stops what the undo has not started. The result reports whether the service
// of a component has stopped; a service that was deleted meanwhile has.
func (u *undoing) stopAgain(ctx context.Context, errs *[]error) (stopped func(Component) bool) {
	var running []string
	if u.journal.reached(Swapping) {
		for _, name := range u.journal.before().Running {
			if u.back[strings.ToLower(name)] {
				continue
			}
			if err := u.stop(ctx, name); err != nil && !errors.Is(err, fault.ErrNoService) {
				*errs, running = append(*errs, err), append(running, name)
			}
		}
	}
	return func(c Component) bool { return !containsFold(running, c.Service) }
}

// startEach starts the services that do not need a component that is not restored. The last round has startRest to
// report what does not start.
func (u *undoing) startEach(ctx context.Context) {
	for _, name := range u.startOrder() {
		if !u.back[strings.ToLower(name)] && !u.waitsForFile(ctx, name, nil) {
			u.back[strings.ToLower(name)] = u.startOld(ctx, name) == nil
		}
	}
}

// startRest starts the services that do not run yet, and describes those that do not start.
func (u *undoing) startRest(ctx context.Context) (down []string) {
	for _, name := range u.startOrder() {
		if u.back[strings.ToLower(name)] {
			continue
		}
		if err := wait.Retry(ctx, func() error { return u.startOld(ctx, name) }); err != nil {
			down = append(down, fmt.Sprintf("service %s does not start with its old binary either: %v", name, err))
		}
	}
	return down
}

// startOld starts a service and makes sure that its process is younger than the old binary's return.
func (u *undoing) startOld(ctx context.Context, name string) error {
	c, _ := u.component(name)
	return u.startSince(ctx, name, u.restored[c.Destination])
}

// waitsForFile reports whether a service, or one that it needs, runs a binary that is not restored yet. Files without
// a service, such as containerd's configuration, are needed by all services. asked has the services of the present
// question, to end a circle.
func (u *undoing) waitsForFile(ctx context.Context, name string, asked []string) bool {
	if containsFold(asked, name) {
		return false
	}
	needs := u.neededBy(ctx, name)
	for _, c := range u.plan.Components {
		if _, restored := u.restored[c.Destination]; !restored && (c.Service == "" || strings.EqualFold(c.Service, name)) {
			return true
		}
	}
	return slices.ContainsFunc(needs, func(other string) bool { return u.waitsForFile(ctx, other, append(asked, name)) })
}

// neededBy returns the services that a service needs, by the plan and by the SCM: the SCM starts those that it knows
// together with the service.
func (u *undoing) neededBy(ctx context.Context, name string) []string {
	c, _ := u.component(name)
	needs := slices.Clone(c.DependsOn)
	if config, err := u.Platform.Services.Config(ctx, name); err == nil {
		needs = append(needs, config.Dependencies...)
	}
	return needs
}

// report records why the undo waits, if it is not the same as before.
func (u *undoing) report(why error) {
	text := why.Error()
	if len(u.news) == mostNews || slices.Contains(u.news, text) {
		return
	}
	u.news = append(u.news, text)
	_ = u.note(Waiting, "", "%s", text)
}
