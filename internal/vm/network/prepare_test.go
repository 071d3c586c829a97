package network

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/testing/dockertest"
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

func (s fakeStep) Apply(context.Context) error {
	*s.applied = append(*s.applied, s.name)
	return s.made
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
			applied: []string{"a", "b"},
			want: Results{NeedRoot: true, Steps: []plan.StepResult{
				state("a", true, plan.Skipped, "it needs root's rights"), state("b", true, plan.Changed, ""),
			}},
		},
		"nothing is applied if one cannot be compared": {
			steps: []fakeStep{{name: "a", needed: true}, {name: "b", planned: broken}},
			want:  Results{Steps: []plan.StepResult{state("a", true, plan.Skipped, "dry run")}}, err: broken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var applied []string
			var steps []Step
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

// swdt makes no network but that of kind, and removes none but one of its own without containers.
func TestNetworksOfOthersStay(t *testing.T) {
	engine := dockertest.Start(t,
		dockertest.Network{Name: "theirs", Subnet: "172.30.0.0/16"},
		dockertest.Network{Name: "ours", Subnet: "172.31.0.0/16", Labels: map[string]string{madeLabel: "true"},
			Containers: map[string]string{"kind-worker": "172.31.0.3", "kind-control-plane": "172.31.0.2"}},
	)
	d := DockerAt(engine.Host())
	if change, err := (&makeNetwork{docker: d, name: "company"}).Plan(t.Context()); !errors.Is(err, ErrNoDockerNetwork) {
		t.Errorf("a network that is not kind's: %+v, %v", change, err)
	}
	for name, want := range map[string]string{
		"theirs": "theirs stays: swdt has not made it",
		"ours":   "ours stays: containers are on it: kind-control-plane, kind-worker",
		"gone":   "there is no Docker network gone",
	} {
		change, err := (&removeNetwork{docker: d, wanted: Wanted{Bridge: name}}).Plan(t.Context())
		must(t, err)
		if diff := cmp.Diff(plan.Change{Summary: want}, change); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A subnet that another network or an interface of your machine has is not taken.
func TestTheNetworkOfKindAvoidsOthers(t *testing.T) {
	engine := dockertest.Start(t, dockertest.Network{Name: "a", Subnet: "172.18.0.0/16"},
		dockertest.Network{Name: "b", Subnet: "172.19.128.0/20"}, dockertest.Network{Name: "c", Driver: "overlay"})
	step := &makeNetwork{docker: DockerAt(engine.Host()), name: "kind"}
	change, err := step.Plan(t.Context())
	must(t, err)
	must(t, step.Apply(t.Context()))
	made := engine.Networks()["kind"]
	for _, other := range append(ownSubnets(), prefix("172.18.0.0/16"), prefix("172.19.128.0/20")) {
		if prefix(made.Subnet).Overlaps(other) {
			t.Errorf("%s overlaps %s (%s)", made.Subnet, other, change.Summary)
		}
	}
	t.Setenv("KIND_EXPERIMENTAL_DOCKER_NETWORK", "mine")
	if change, err := (&makeNetwork{docker: step.docker, name: "mine"}).Plan(t.Context()); err != nil || !change.Needed {
		t.Errorf("kind's network of another name: %+v, %v", change, err)
	}
}
