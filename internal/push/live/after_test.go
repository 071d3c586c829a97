package live_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/push/live"
	"github.com/swdt-dev/swdt/internal/push/watch"
)

// runs records what an After does.
type runs struct {
	*live.After
	log     []string
	release chan struct{} // ends a run
}

func newRuns(ctx context.Context) *runs {
	r := &runs{release: make(chan struct{})}
	r.After = &live.After{
		Run: func(ctx context.Context) {
			r.log = append(r.log, "begun")
			select {
			case <-r.release:
				r.log = append(r.log, "done")
			case <-ctx.Done():
				r.log = append(r.log, "ended: "+context.Cause(ctx).Error())
			}
		},
		NotRun: func(nodes []string) { r.log = append(r.log, "not run: "+strings.Join(nodes, ",")) },
	}
	r.Begin(ctx)
	return r
}

// report reports events, each as "NODE KIND".
func (r *runs) report(events ...string) {
	for _, text := range events {
		name, kind, _ := strings.Cut(text, " ")
		r.Report(watch.Event{Node: name, Kind: watch.Kind(kind)})
	}
	synctest.Wait()
}

func TestAfter(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(r *runs)
		want []string
	}{
		"after each push": {func(r *runs) {
			r.report("a connected", "a pushing", "a committing", "a pushed")
			r.release <- struct{}{}
			synctest.Wait()
			r.report("a pushing", "a pushed")
			r.release <- struct{}{}
		}, []string{"begun", "done", "begun", "done"}},
		"once all nodes have the build": {func(r *runs) {
			r.report("a pushing", "b pushing", "a pushed", "b superseded", "b pushing", "b pushed")
		}, []string{"begun", "ended: context canceled"}},
		"a build interrupts before a node changes": {func(r *runs) {
			r.report("a pushing", "a pushed", "a pushing")
			r.Interrupt(context.Background())
			r.report("a committing", "a pushed")
		}, []string{"begun", "ended: a new build is about to be pushed", "begun", "ended: context canceled"}},
		"a push that changes nothing does not interrupt": {func(r *runs) {
			r.report("a pushing", "a pushed", "a pushing", "a pushed")
		}, []string{"begun", "ended: context canceled"}},
		"not if a push has failed": {func(r *runs) {
			r.report("a pushing", "b pushing", "a pushed", "b failed", "b pushing", "b failed")
			r.report("b pushing", "b pushed")
		}, []string{"not run: b", "begun", "ended: context canceled"}},
		"a node without a connection does not count": {func(r *runs) {
			r.report("b failed", "a pushing", "a pushed", "b failed")
		}, []string{"begun", "ended: context canceled"}},
		"after a rollback": {func(r *runs) {
			r.report("a pushing", "a failed", "a rolledBack")
		}, []string{"begun", "ended: context canceled"}},
		"not after the end": {func(r *runs) {
			r.End()
			r.report("a pushing", "a pushed")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRuns(t.Context())
				test.do(r)
				synctest.Wait()
				r.End()
				if diff := cmp.Diff(test.want, r.log); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

// A push that is itself cancelled does not wait for the run.
func TestInterruptDoesNotOutliveItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		a := &live.After{Run: func(context.Context) { <-hold }}
		a.Begin(t.Context())
		a.Report(watch.Event{Node: "a", Kind: watch.Pushed})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("superseded"))
		a.Interrupt(ctx)
		close(hold)
		a.End()
	})
}
