package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/plan"
)

func TestRebootThatIsAllowed(t *testing.T) {
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{AllowReboot: true},
		&step{name: "feature", needed: true, after: true}, &step{name: "b", needed: true})
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, results, "changed changed",
		"plan feature, plan b, lock, apply feature, reboot, await, lock, plan feature, plan b, apply b, unlock")
	if !strings.Contains(results[0].Message, "rebooted") {
		t.Errorf("the message does not mention the reboot: %+v", results[0])
	}
}

func TestRebootThatIsNotAllowed(t *testing.T) {
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{},
		&step{name: "feature", needed: true, after: true}, &step{name: "b", needed: true},
		&step{name: "c", needed: true, needs: []string{"feature"}})
	var reboot *plan.RebootRequiredError
	if !errors.As(err, &reboot) || reboot.Steps[0] != "feature" {
		t.Fatalf("got %v", err)
	}
	check(t, m, results, "rebootRequired changed skipped",
		"plan feature, plan b, plan c, lock, apply feature, apply b, unlock")
}

func TestAStepThatARebootDidNotFinishFails(t *testing.T) {
	m := &machine{}
	results, err := run(t, t.Context(), m, plan.Options{AllowReboot: true},
		&step{name: "feature", needed: true, after: true, stays: true})
	var failed *plan.FailedError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "after the reboot") {
		t.Fatalf("got %v", err)
	}
	if got := stateOf(results); got != "failed" || m.boots != 1 {
		t.Errorf("states %s after %d reboots", got, m.boots)
	}
}

func TestInAnOrderedPlanAStepThatCannotBeComparedAfterTheRebootEndsIt(t *testing.T) {
	m := &machine{}
	feature, b := &step{name: "feature", needed: true, after: true}, &step{name: "b", needed: true}
	b.compare = func() error {
		if m.boots > 0 {
			return errors.New("no answer")
		}
		return nil
	}
	results, err := run(t, t.Context(), m, plan.Options{AllowReboot: true, Ordered: true}, feature,
		b, &step{name: "c", needed: true})
	if err == nil || results[2].Message != "not tried" {
		t.Errorf("%+v, %v", results, err)
	}
	check(t, m, results, "changed failed skipped",
		"plan feature, plan b, plan c, lock, apply feature, reboot, await, lock, plan feature, plan b, plan c, unlock")
}
