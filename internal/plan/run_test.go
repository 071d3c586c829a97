package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// machine records the order of events.
type machine struct {
	log    []string
	boots  int
	locked string // the holder, if another user has locked it
}

// errLost is the error of a call whose connection is lost.
var errLost = errors.New("the connection is gone before the answer")

func (m *machine) IsLost(err error) bool { return errors.Is(err, errLost) }

func (m *machine) Lock(_ context.Context, holder string) error {
	if m.locked != "" {
		return fmt.Errorf("held by %s", m.locked)
	}
	if holder == "" {
		return errors.New("the lock is not wanted")
	}
	m.log = append(m.log, "lock")
	return nil
}

func (m *machine) Unlock(context.Context) error {
	m.log = append(m.log, "unlock")
	return nil
}

func (m *machine) BootID(context.Context) (string, error) { return fmt.Sprint("boot ", m.boots), nil }

func (m *machine) Reboot(context.Context, string) error {
	m.log = append(m.log, "reboot")
	m.boots++
	return errLost
}

func (m *machine) AwaitReboot(_ context.Context, old string) error {
	if old != fmt.Sprint("boot ", m.boots-1) {
		return fmt.Errorf("waits for another boot than %q", old)
	}
	m.log = append(m.log, "await")
	return nil
}

// step is a scripted step.
type step struct {
	m       *machine
	name    string
	needed  bool
	after   bool // takes effect after a reboot
	stays   bool // never takes effect
	waits   bool // only waits
	planErr error
	compare func() error // returns the error of Plan
	err     error
	needs   []string
	boot    int

	follows []string
	follow  func() bool // reports whether it has something to do right before its turn
	silent  bool        // no follow-up is expected
}

func (s *step) Name() string    { return s.name }
func (s *step) Needs() []string { return s.needs }

func (s *step) Plan(context.Context) (plan.Change, error) {
	s.m.log = append(s.m.log, "plan "+s.name)
	if s.planErr != nil {
		return plan.Change{}, s.planErr
	}
	if s.compare != nil {
		if err := s.compare(); err != nil {
			return plan.Change{}, err
		}
	}
	if s.follow != nil {
		return plan.Change{Needed: s.follow(), Summary: "restart"}, nil
	}
	return plan.Change{Needed: s.needed && (s.stays || !s.after || s.m.boots == s.boot), Summary: "do " + s.name}, nil
}

func (s *step) Follows() []string { return s.follows }
func (s *step) FollowUp() string {
	if s.silent {
		return ""
	}
	return "restart, since " + strings.Join(s.follows, " or ") + " changes"
}

func (s *step) PlanUndo(context.Context) (plan.Change, error) {
	s.m.log = append(s.m.log, "plan undo "+s.name)
	return plan.Change{Needed: s.needed, Summary: "undo " + s.name}, nil
}

func (s *step) Undo(context.Context, ui.Reporter) (plan.Outcome, error) {
	s.m.log = append(s.m.log, "undo "+s.name)
	return plan.Outcome{}, s.err
}

func (s *step) Apply(context.Context, ui.Reporter) (plan.Outcome, error) {
	s.m.log = append(s.m.log, "apply "+s.name)
	if s.err != nil {
		return plan.Outcome{}, s.err
	}
	s.boot = s.m.boots
	if s.waits {
		return plan.Outcome{Waited: true, Message: s.name + " is there"}, nil
	}
	return plan.Outcome{RebootRequired: s.after}, nil
}

func run(t *testing.T, ctx context.Context, m *machine, opts plan.Options, steps ...*step) ([]plan.StepResult, error) {
	t.Helper()
	var list []plan.Step
	for _, s := range steps {
		s.m = m
		list = append(list, s)
	}
	opts.Machine = m
	results, err := plan.Run(ctx, list, opts, ui.Discard{})
	if len(results) != len(steps) {
		t.Fatalf("%d results for %d steps", len(results), len(steps))
	}
	for i, result := range results {
		if result.Name != steps[i].name || result.State == "" {
			t.Errorf("result %d is %+v", i, result)
		}
	}
	return results, err
}

func stateOf(results []plan.StepResult) string {
	var out []string
	for _, result := range results {
		out = append(out, string(result.State))
	}
	return strings.Join(out, " ")
}

func check(t *testing.T, m *machine, results []plan.StepResult, states, log string) {
	t.Helper()
	if got := stateOf(results); got != states {
		t.Errorf("states: %s, want %s", got, states)
	}
	if diff := cmp.Diff(strings.Split(log, ", "), m.log); diff != "" {
		t.Errorf("what happened: %s", diff)
	}
}

func TestRunPlansAllThenAppliesTheNeededSteps(t *testing.T) {
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{}, &step{name: "a", needed: true}, &step{name: "b"},
		&step{name: "c", needed: true})
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, results, "changed ok changed", "plan a, plan b, plan c, lock, apply a, apply c, unlock")
	if results[0].Change != "do a" || results[1].Change != "" {
		t.Errorf("changes: %+v", results)
	}
}

// A step that only waits ends as if it had looked later. A step that follows it is not compared again.
func TestAStepThatOnlyWaits(t *testing.T) {
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{}, &step{name: "a", needed: true},
		&step{name: "b", needed: true, waits: true},
		&step{name: "c", follows: []string{"b"}, follow: func() bool { return false }, silent: true})
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, results, "changed ok ok", "plan a, plan b, plan c, lock, apply a, apply b, unlock")
	if diff := cmp.Diff(plan.StepResult{Name: "b", State: plan.OK, Message: "b is there"}, results[1]); diff != "" {
		t.Errorf("the step that waited: %s", diff)
	}
}

func TestNothingNeededLocksNothing(t *testing.T) {
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{AllowReboot: true}, &step{name: "a"}, &step{name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, results, "ok ok", "plan a, plan b")
}

func TestDryRun(t *testing.T) {
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{DryRun: true}, &step{name: "a", needed: true}, &step{name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, results, "skipped ok", "plan a, plan b")
	if results[0].Change != "do a" {
		t.Errorf("the change is not shown: %+v", results[0])
	}
}

func TestAStepThatCannotBeComparedStopsAllBeforeTheFirstChange(t *testing.T) {
	m := &machine{}
	cause := errors.New("no such feature")
	results, err := run(t, t.Context(), m, plan.Options{},
		&step{name: "a", needed: true}, &step{name: "b", planErr: cause},
		&step{name: "c", planErr: errors.New("another")})
	var failed *plan.FailedError
	if !errors.As(err, &failed) || !errors.Is(err, cause) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff("2 steps failed:\n  b: compare with the node: no such feature\n  c: compare with the node: "+
		"another", err.Error()); diff != "" {
		t.Errorf("every problem at once: %s", diff)
	}
	check(t, m, results, "skipped failed failed", "plan a, plan b, plan c")
}

func TestCommonCauseIsReportedOnce(t *testing.T) {
	forbidden := errors.New("forbidden")
	err := &plan.FailedError{Steps: []string{"a", "b", "c"},
		Errs: []error{forbidden, forbidden, errors.New("two\nlines")}}
	if got, want := err.Error(), "3 steps failed:\n  a, b: forbidden\n  c: two\n    lines"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestOneFailureLeavesIndependentStepsAlone(t *testing.T) {
	m := &machine{}
	cause := errors.New("no internet")
	results, err := run(t, t.Context(), m, plan.Options{},
		&step{name: "chocolatey", needed: true, err: cause},
		&step{name: "vim", needed: true, needs: []string{"chocolatey"}},
		&step{name: "hosts", needed: true})
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "chocolatey") {
		t.Fatalf("got %v", err)
	}
	check(t, m, results, "failed skipped changed",
		"plan chocolatey, plan vim, plan hosts, lock, apply chocolatey, apply hosts, unlock")
	if !strings.Contains(results[1].Message, "chocolatey") {
		t.Errorf("vim does not say why: %+v", results[1])
	}
}

func TestALostConnectionEndsTheRun(t *testing.T) {
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{},
		&step{name: "a", needed: true, err: errLost}, &step{name: "b", needed: true})
	if !errors.Is(err, errLost) {
		t.Fatalf("got %v", err)
	}
	if got := stateOf(results); got != "failed skipped" {
		t.Errorf("states: %s", got)
	}
}

// A step that cannot even be compared after a reboot counts as not done: the steps that
// need it are not tried.
func TestALockedNodeIsNotChanged(t *testing.T) {
	m := &machine{locked: "ann@desk"}
	results, err := run(t, t.Context(), m, plan.Options{}, &step{name: "a", needed: true})
	if err == nil || !strings.Contains(err.Error(), "ann@desk") {
		t.Fatalf("got %v", err)
	}
	check(t, m, results, "skipped", "plan a")
}

func TestCtrlCStopsBetweenSteps(t *testing.T) {
	m := &machine{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results, err := run(t, ctx, m, plan.Options{},
		&step{name: "a", needed: true, planErr: context.Canceled}, &step{name: "b", needed: true})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	check(t, m, results, "failed skipped", "plan a")
}

func TestAStepThatFollowsAnother(t *testing.T) {
	changed := false
	config := func(needed bool) *step { return &step{name: "config", needed: needed} }
	service := func() *step {
		return &step{name: "service", follows: []string{"config"}, follow: func() bool { return changed }}
	}

	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{DryRun: true}, config(true), service())
	switch {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case results[1].Change != "restart, since config changes":
		t.Errorf("results[1].Change = %q, want %q", results[1].Change, "restart, since config changes")
	case results[1].State != plan.Skipped:
		t.Errorf("results[1].State = %v, want %v; a dry run does not tell what follows: %+v, %v", results[1].State,
			plan.Skipped, results, err)
	}

	m = &machine{}
	results, err = run(t, t.Context(), m, plan.Options{}, config(false), service())
	if err != nil || stateOf(results) != "ok ok" {
		t.Errorf("nothing changes, and yet: %+v, %v", results, err)
	}

	// It is compared again when its turn comes: the step that it follows may have left nothing
	// to do.
	m = &machine{}
	results, err = run(t, t.Context(), m, plan.Options{}, config(true), service())
	if err != nil {
		t.Fatal(err)
	}
	// One comparison more than usual: steps that follow others are compared again.
	check(t, m, results, "changed ok", "plan config, plan service, lock, apply config, plan service, unlock")

	changed, m = true, &machine{}
	results, err = run(t, t.Context(), m, plan.Options{}, config(true), service())
	if err != nil || results[1].Change != "restart" {
		t.Errorf("%+v, %v", results, err)
	}
	check(t, m, results, "changed changed",
		"plan config, plan service, lock, apply config, plan service, apply service, unlock")
}

// A step for which no follow-up is expected does not appear in a dry run. It is compared
// again nevertheless, if a step that it follows has changed something.
func TestAStepThatIsExpectedToHaveNothingToDo(t *testing.T) {
	steps := func(needed bool) []*step {
		files := &step{name: "files", needed: needed}
		config := &step{name: "config", follows: []string{"files"}, silent: true, follow: func() bool { return false }}
		return []*step{files, config}
	}
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{DryRun: true}, steps(true)...)
	if err != nil || stateOf(results) != "skipped ok" {
		t.Errorf("a dry run: %+v, %v", results, err)
	}
	m = &machine{}
	results, err = run(t, t.Context(), m, plan.Options{}, steps(false)...)
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, results, "ok ok", "plan files, plan config")
	m = &machine{}
	results, err = run(t, t.Context(), m, plan.Options{}, steps(true)...)
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, results, "changed ok", "plan files, plan config, lock, apply files, plan config, unlock")

	m = &machine{}
	both := steps(true)
	both[1].follow = func() bool { return slices.Contains(m.log, "apply files") }
	results, err = run(t, t.Context(), m, plan.Options{}, both...)
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, results, "changed changed",
		"plan files, plan config, lock, apply files, plan config, apply config, unlock")
}

func TestInAnOrderedPlanAFailureEndsIt(t *testing.T) {
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{Ordered: true},
		&step{name: "a", needed: true, err: errors.New("no")}, &step{name: "b", needed: true})
	if err == nil || results[1].Message != "not tried" {
		t.Errorf("%+v, %v", results, err)
	}
	check(t, m, results, "failed skipped", "plan a, plan b, lock, apply a, unlock")

	m = &machine{}
	results, err = run(t, t.Context(), m, plan.Options{Ordered: true},
		&step{name: "a", needed: true, after: true}, &step{name: "b", needed: true})
	var reboot *plan.RebootRequiredError
	if !errors.As(err, &reboot) {
		t.Errorf("error: %v", err)
	}
	check(t, m, results, "rebootRequired skipped", "plan a, plan b, lock, apply a, unlock")
}

func TestUndoTakesStepsBackLastFirst(t *testing.T) {
	m := &machine{}
	steps := []plan.Step{&step{m: m, name: "a", needed: true}, onlyForward{}, &step{m: m, name: "b"},
		&step{m: m, name: "c", needed: true}}
	results, err := plan.Run(t.Context(), plan.Undo(steps), plan.Options{Machine: m},
		ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, results, "changed ok changed", "plan undo c, plan undo b, plan undo a, lock, undo c, undo a, unlock")
}

// onlyForward is a step that cannot be undone.
type onlyForward struct{ plan.Step }

func TestAroundAllThatIsApplied(t *testing.T) {
	m := &machine{}
	around := func(refuse error) func(context.Context, func(context.Context) error) error {
		return func(ctx context.Context, apply func(context.Context) error) error {
			m.log = append(m.log, "before")
			if refuse != nil {
				return refuse
			}
			defer func() { m.log = append(m.log, "after") }()
			return apply(ctx)
		}
	}
	results, err := run(t, t.Context(), m, plan.Options{Around: around(nil)}, &step{name: "a", needed: true})
	if err != nil {
		t.Error(err)
	}
	check(t, m, results, "changed", "plan a, lock, before, apply a, after, unlock")

	*m = machine{}
	refusal := errors.New("a budget forbids it")
	results, err = run(t, t.Context(), m, plan.Options{Around: around(refusal)}, &step{name: "a", needed: true})
	if !errors.Is(err, refusal) || results[0].Message != "not tried" {
		t.Errorf("%+v, %v", results, err)
	}
	check(t, m, results, "skipped", "plan a, lock, before, unlock")

	*m = machine{}
	if _, err = run(t, t.Context(), m, plan.Options{Around: around(nil)}, &step{name: "a"}); err != nil {
		t.Error(err)
	}
	if slices.Contains(m.log, "before") {
		t.Error("something is done around nothing")
	}
}
