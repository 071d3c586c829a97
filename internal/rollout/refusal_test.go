package rollout_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
)

// Refused orders are given again. They count neither as failures of the content nor for the failure limit.
func TestARefusalIsNoFailure(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{FailureLimit: 1, MaxUnavailable: number(2), Drain: &fleetv1.Drain{}},
		doubts, doubts, doubts, doubts)
	m.settle(t)
	if s := m.decide().Status; s.State != rollout.StateComplete || s.Updated != 4 || len(s.FailedNodes) > 0 {
		t.Errorf("the status is %+v", s)
	}
	for name, orders := range m.orders {
		if orders < 3 {
			t.Errorf("%s had %d orders", name, orders)
		}
	}
}

// A refused order stays for a minute, if the rollout still wants it, and what it had before is not forgotten.
func TestARefusedOrderIsWithdrawn(t *testing.T) {
	for name, test := range map[string]struct {
		order fleetv1.NodeStateSpec
		spec  fleetv1.NodeRolloutSpec
		ago   time.Duration
		want  string // the action, and its verdict; "": it waits
	}{
		"a claim":                 {fleetv1.NodeStateSpec{Action: fleetv1.ActionApply}, fleetv1.NodeRolloutSpec{}, 59 * time.Second, ""},
		"a claim, later":          {fleetv1.NodeStateSpec{Action: fleetv1.ActionApply}, fleetv1.NodeRolloutSpec{}, time.Minute, "letGo "},
		"a released order":        {fleetv1.NodeStateSpec{Action: fleetv1.ActionApply, Released: true}, fleetv1.NodeRolloutSpec{}, 59 * time.Second, ""},
		"a released order, later": {fleetv1.NodeStateSpec{Action: fleetv1.ActionApply, Released: true}, fleetv1.NodeRolloutSpec{}, time.Minute, "letGo "},
		"after an abort": {fleetv1.NodeStateSpec{Action: fleetv1.ActionApply, Released: true},
			fleetv1.NodeRolloutSpec{Operation: fleetv1.OperationAbort}, 0, "letGo "},
		"a rollback": {fleetv1.NodeStateSpec{Action: fleetv1.ActionRollBack, Released: true, RollbackGeneration: 2},
			fleetv1.NodeRolloutSpec{Operation: fleetv1.OperationRollBack}, time.Minute, "convict Updated"},
		"a rollback that was ended": {fleetv1.NodeStateSpec{Action: fleetv1.ActionRollBack, Released: true, RollbackGeneration: 2},
			fleetv1.NodeRolloutSpec{}, 0, "convict Updated"},
		"a rollback of a failed node": {fleetv1.NodeStateSpec{Action: fleetv1.ActionRollBack, Released: true, RollbackGeneration: 2,
			Reason: "bad"}, fleetv1.NodeRolloutSpec{}, 0, "convict Failed"},
		"a return": {fleetv1.NodeStateSpec{Action: fleetv1.ActionRollBack, Released: true, Reason: "not Ready"},
			fleetv1.NodeRolloutSpec{}, 0, "convict Failed"},
	} {
		test.order.Since = metav1.NewTime(noon.Add(-test.ago))
		n := reporting(recorded("a", test.order), fleetv1.PhaseRefused, "it is another one")
		d := decided(test.spec, "", n)
		got := ""
		if len(d.Actions) > 0 {
			got = string(d.Actions[0].Do) + " " + string(d.Actions[0].Verdict)
		}
		if got != test.want || test.want == "" && (d.Again <= 0 || !strings.Contains(d.Status.Message, "node a refuses its order: it is another one")) {
			t.Errorf("%s: the action is %q, want %q; the decision is %+v", name, got, test.want, d)
		}
	}
}
