package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// A plan for a cluster has no node that it could lock.
func TestAPlanElsewhereHasNoNode(t *testing.T) {
	m := &machine{}
	steps := []plan.Step{&step{m: m, name: "a", needed: true}, &step{m: m, name: "b"}}
	results, err := plan.Run(t.Context(), steps, plan.Options{Elsewhere: "the cluster"}, ui.Discard{})
	if err != nil || results[0].State != plan.Changed || results[1].State != plan.OK {
		t.Errorf("%+v, %v", results, err)
	}
	if diff := cmp.Diff([]string{"plan a", "plan b", "apply a"}, m.log); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	steps = []plan.Step{&step{m: m, name: "a", planErr: errors.New("no answer")}}
	_, err = plan.Run(t.Context(), steps, plan.Options{Elsewhere: "the cluster"}, ui.Discard{})
	if err == nil || !strings.Contains(err.Error(), "compare with the cluster: no answer") {
		t.Errorf("the error is %v", err)
	}
}
