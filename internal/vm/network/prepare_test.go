package network

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// fakeStep is a step with fixed answers.
type fakeStep struct {
	name          string
	needed        bool
	planned, made error
	applied       *[]string
}

func (s fakeStep) Name() string { return s.name }

func (s fakeStep) Plan(context.Context) (plan.Change, error) {
	return plan.Change{Needed: s.needed, Summary: "change " + s.name, Detail: "a command"}, s.planned
}

func (s fakeStep) Apply(context.Context, ui.Reporter) (plan.Outcome, error) {
	*s.applied = append(*s.applied, s.name)
	return plan.Outcome{}, s.made
}

func TestRunOfSteps(t *testing.T) {
	broken := errors.New("broken")
	state := func(name string, change bool, state plan.State, message string) plan.StepResult {
		r := plan.StepResult{Name: name, State: state, Message: message}
		if change {
			r.Change, r.Detail = "change "+name, "a command"
		}
		return r
	}
	for name, test := range map[string]struct {
		steps   []fakeStep
		dryRun  bool
		applied []string
		want    Results
		err     error
	}{
		"a dry run applies nothing": {
			steps: []fakeStep{{name: "a", needed: true}, {name: "b"}}, dryRun: true,
			want: Results{Steps: []plan.StepResult{
				state("a", true, plan.Skipped, "dry run"), state("b", false, plan.OK, "change b"),
			}},
		},
		"only what is needed": {
			steps: []fakeStep{{name: "a"}, {name: "b", needed: true}}, applied: []string{"b"},
			want: Results{Steps: []plan.StepResult{state("a", false, plan.OK, "change a"), state("b", true, plan.Changed, "")}},
		},
		"nothing after a failure": {
			steps: []fakeStep{{name: "a", needed: true, made: broken}, {name: "b", needed: true}}, applied: []string{"a"},
			want: Results{Steps: []plan.StepResult{
				state("a", true, plan.Failed, "broken"), state("b", true, plan.Skipped, "not tried"),
			}},
			err: broken,
		},
		"the rest is for root": {
			steps:   []fakeStep{{name: "a", needed: true, made: ErrRoot}, {name: "b", needed: true}},
			applied: []string{"a"},
			want: Results{NeedRoot: true, Steps: []plan.StepResult{
				state("a", true, plan.Skipped, "it needs root's rights"), state("b", true, plan.Skipped, "not tried"),
			}},
		},
		"nothing is applied if one cannot be compared": {
			steps: []fakeStep{{name: "a", needed: true}, {name: "b", planned: broken}},
			want: Results{Steps: []plan.StepResult{
				state("a", true, plan.Skipped, "nothing was changed"), state("b", false, plan.Failed, "compare with this machine: broken"),
			}},
			err: broken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var applied []string
			var steps []plan.Step
			for _, s := range test.steps {
				s.applied = &applied
				steps = append(steps, s)
			}
			got, err := Run(t.Context(), steps, test.dryRun, ui.Discard{})
			if !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.applied, applied); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyModeBridgeIsPrepared(t *testing.T) {
	for _, mode := range []string{User, OnTap} {
		_, err := Preparation(Docker{}, Wanted{Mode: mode})
		_, removal := Removal(Docker{}, Wanted{Mode: mode})
		if !errors.Is(err, ErrNothingToPrepare) || !errors.Is(removal, ErrNothingToPrepare) {
			t.Errorf("mode %s: %v and %v", mode, err, removal)
		}
	}
}
