package evidence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/suite"
)

// change is a state that began at a time.
type change struct {
	Time  time.Time `json:"time"` // of this machine's clock
	State string    `json:"state"`
}

// changes are the states of a pod or node, the oldest first.
type changes []change

// add adds the state, unless it is the present one.
func (c changes) add(state string) changes {
	if len(c) > 0 && c[len(c)-1].State == state {
		return c
	}
	c = append(c, change{Time: time.Now(), State: state})
	return slices.Clone(c[max(0, len(c)-maxChanges):])
}

// window is the time in which a spec ran.
type window struct{ begin, end time.Time }

// within returns the states in a window, with the one in which it began.
func (c changes) within(w window) changes {
	first := 0
	for first+1 < len(c) && !c[first+1].Time.After(w.begin) {
		first++
	}
	last := len(c)
	for last > first && c[last-1].Time.After(w.end) {
		last--
	}
	return c[first:last]
}

// short shortens a text of the cluster to one line.
func short(text string) string {
	return suite.Shortened(strings.Join(strings.Fields(text), " "), maxText)
}

// podState returns the state of a pod in words.
func podState(p *corev1.Pod) string {
	parts := []string{string(p.Status.Phase)}
	if p.Spec.NodeName != "" {
		parts[0] += " on " + p.Spec.NodeName
	}
	parts = append(parts, podTroubles(p)...)
	if p.DeletionTimestamp != nil {
		parts = append(parts, "being deleted")
	}
	return short(strings.Join(parts, "; "))
}

// podTroubles returns why a pod is not Running and Ready, in words. The start of a container is no
// trouble.
func podTroubles(p *corev1.Pod) (all []string) {
	if p.Status.Reason != "" || p.Status.Message != "" {
		all = append(all, strings.Trim(p.Status.Reason+": "+p.Status.Message, ": "))
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			all = append(all, strings.Trim("not scheduled: "+c.Message, ": "))
		}
	}
	for _, text := range cluster.Waiting(p) {
		all = append(all, "waits: "+text)
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if end := c.State.Terminated; end != nil && end.ExitCode != 0 {
			all = append(all, strings.Trim(fmt.Sprintf("%s: ended with exit code %d: %s: %s", c.Name, end.ExitCode, end.Reason,
				end.Message), ": "))
		} else if end := c.LastTerminationState.Terminated; end != nil && end.ExitCode != 0 {
			all = append(all, strings.Trim(fmt.Sprintf("%s: restarted %d times, last exit code %d: %s: %s", c.Name,
				c.RestartCount, end.ExitCode, end.Reason, end.Message), ": "))
		}
	}
	return all
}

// starting reports whether a trouble of podTroubles is part of each start of a container.
func starting(trouble string) bool {
	return strings.HasSuffix(trouble, ": ContainerCreating") || strings.HasSuffix(trouble, ": PodInitializing")
}

// ready is the state of a node without troubles.
const ready = "Ready"

// nodeState returns the state of a node in words.
func nodeState(n *corev1.Node) string {
	state := "no condition Ready"
	var others []string
	for _, c := range n.Status.Conditions {
		text := strings.Trim(c.Reason+": "+short(c.Message), ": ")
		switch {
		case c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue:
			state = ready
		case c.Type == corev1.NodeReady:
			state = "not Ready (" + string(c.Status) + "): " + text
		case c.Status == corev1.ConditionTrue:
			others = append(others, string(c.Type)+": "+text)
		}
	}
	if n.Spec.Unschedulable {
		others = append(others, "cordoned")
	}
	slices.Sort(others)
	return short(strings.Join(append([]string{state}, others...), "; "))
}

// isReady reports whether a state of nodeState is that of a node that is Ready.
func isReady(state string) bool { return state == ready || strings.HasPrefix(state, ready+"; ") }
