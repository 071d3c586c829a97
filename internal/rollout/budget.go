package rollout

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// share returns a number of nodes; a percentage is rounded down, but is at least 1. def is the number
// if there is no value or no sensible one.
func share(value *intstr.IntOrString, nodes, def int) int {
	if value == nil {
		return def
	}
	if value.Type == intstr.Int {
		return max(int(value.IntVal), 1)
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	if err != nil {
		return def
	}
	return max(nodes*percent/100, 1)
}

// Step returns the index of the present canary step, how many nodes may have the content or be on their
// way to it in this step, failed nodes not counted, and how long the step still pauses. After the last
// step, the index is the number of steps. updated are the times at which the updated nodes succeeded.
func Step(canary []fleetv1.CanaryStep, nodes int, updated []time.Time, now time.Time) (i, most int,
	pause time.Duration) {
	updated = slices.SortedFunc(slices.Values(updated), time.Time.Compare)
	for i, step := range canary {
		target := min(share(&step.Nodes, nodes, 1), nodes)
		if len(updated) < target {
			return i, target, 0
		}
		if target == 0 {
			continue
		}
		if left := updated[target-1].Add(DurationOf(step.Pause, 0)).Sub(now); left > 0 {
			return i, target, left
		}
	}
	return len(canary), nodes, 0
}

// updatedAt returns the times of the success of all updated nodes.
func (d *decider) updatedAt() (all []time.Time) {
	for _, n := range d.in.Nodes {
		if d.stage(n) == stageUpdated {
			all = append(all, n.State.Spec.Since.Time)
		}
	}
	return all
}

// DurationOf returns a duration of the spec, or def if it is unset. The schema has checked the form, so a duration
// that cannot be parsed is too long for Go: DurationOf returns the longest one then, which is 292 years.
func DurationOf(text fleetv1.Duration, def time.Duration) time.Duration {
	if text == "" {
		return def
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return math.MaxInt64
	}
	return d
}
