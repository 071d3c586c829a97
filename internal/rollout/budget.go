package rollout

import (
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

// canary returns how many nodes may have the content or be on their way to it, failed nodes not
// counted, and how long the present step still pauses.
func (d *decider) canary() (most int, pause time.Duration) {
	updated := d.updatedAt()
	for _, step := range d.in.Spec.Canary {
		target := min(share(&step.Nodes, len(d.in.Nodes), 1), len(d.in.Nodes))
		if len(updated) < target {
			return target, 0
		}
		left := durationOf(step.Pause, 0) - d.in.Now.Sub(updated[target-1])
		if left > 0 {
			return target, left
		}
	}
	return len(d.in.Nodes), 0
}

// updatedAt returns the times of the success of all updated nodes, in order.
func (d *decider) updatedAt() (all []time.Time) {
	for _, n := range d.in.Nodes {
		if d.stage(n) == stageUpdated {
			all = append(all, n.State.Spec.Since.Time)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// durationOf returns a duration of the spec, or def if it is unset. The schema has checked the form.
func durationOf(text fleetv1.Duration, def time.Duration) time.Duration {
	if d, err := time.ParseDuration(string(text)); err == nil && text != "" {
		return d
	}
	return def
}
