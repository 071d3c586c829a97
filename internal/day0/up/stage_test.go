package up

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

func discard(string) ui.Reporter { return ui.Discard{} }

// results returns stage and result of each stage.
func results(stages []Stage) (all []string) {
	for _, stage := range stages {
		all = append(all, label(stage.Stage, stage.Node)+": "+stage.Result+" "+stage.Message)
	}
	return all
}

// Stages that do not need each other run at the same time: each waits for the other here.
func TestStagesRunSideBySide(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	meet := func(context.Context, ui.Reporter) (done, error) {
		both.Done()
		both.Wait()
		return done{changed: true}, nil
	}
	stages := []*stage{{kind: Cluster, run: meet}, {kind: Machine, node: "a", run: meet}}
	got, err := runStages(t.Context(), stages, discard)
	if diff := cmp.Diff([]string{"cluster: changed ", "machine of a: changed "}, results(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestStagesWaitForThoseTheyNeed(t *testing.T) {
	var order []string // no lock: the stages need each other
	run := func(name string) func(context.Context, ui.Reporter) (done, error) {
		return func(context.Context, ui.Reporter) (done, error) {
			order = append(order, name)
			return done{}, nil
		}
	}
	first := &stage{kind: Machine, node: "a", run: run("machine")}
	second := &stage{kind: Setup, node: "a", needs: []*stage{first}, run: run("setup")}
	third := &stage{kind: Join, node: "a", needs: []*stage{first, second}, run: run("join")}
	if _, err := runStages(t.Context(), []*stage{third, second, first}, discard); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"machine", "setup", "join"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestFailedStageEndsThoseThatNeedIt(t *testing.T) {
	broken := errors.New("broken")
	fail := func(context.Context, ui.Reporter) (done, error) { return done{}, broken }
	work := func(context.Context, ui.Reporter) (done, error) { return done{message: "worked"}, nil }
	a := &stage{kind: Machine, node: "a", run: fail}
	b := &stage{kind: Machine, node: "b", run: work}
	setupA := &stage{kind: Setup, node: "a", needs: []*stage{a}, run: work}
	joinA := &stage{kind: Join, node: "a", needs: []*stage{setupA}, run: work}
	joinB := &stage{kind: Join, node: "b", needs: []*stage{b}, run: work}
	got, err := runStages(t.Context(), []*stage{a, b, setupA, joinA, joinB}, discard)
	var failure *StageError
	if !errors.Is(err, broken) || !errors.As(err, &failure) || failure.Node != "a" {
		t.Errorf("error %v", err)
	}
	want := []string{
		"machine of a: failed ", "machine of b: unchanged worked", "setup of a: skipped needs machine of a",
		"join of a: skipped needs setup of a", "join of b: unchanged worked",
	}
	if diff := cmp.Diff(want, results(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInterruptedStagesDoNotBegin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first := &stage{kind: Cluster, run: func(context.Context, ui.Reporter) (done, error) {
		cancel()
		return done{changed: true}, nil
	}}
	fail := func(context.Context, ui.Reporter) (done, error) {
		t.Error("the second stage runs")
		return done{}, nil
	}
	second := &stage{kind: Join, node: "a", needs: []*stage{first}, run: fail}
	got, err := runStages(ctx, []*stage{first, second}, discard)
	if diff := cmp.Diff([]string{"cluster: changed ", "join of a: skipped interrupted"}, results(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if report := newReport("dev", got, nil, 0, err); !errors.Is(err, context.Canceled) || report.Result != fleet.Failed {
		t.Errorf("an interrupted run is %s: %v", report.Result, err)
	}
}
