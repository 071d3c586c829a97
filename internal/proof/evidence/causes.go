package evidence

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/proof/suite"
)

// causes returns the likely causes of a failure, the most likely first: nodes that were not Ready, warnings,
// pods that did not come up, and errors in the logs of nodes about the spec's namespaces.
func (b *bundle) causes() (all []string) {
	for _, name := range b.nodes {
		for _, c := range slices.Backward(b.states[name]) {
			if !isReady(c.State) {
				all = append(all, "node "+name+" was "+c.State)
				break
			}
		}
	}
	for _, n := range b.namespaces {
		all = append(all, warnings(n.sortedEvents())...)
	}
	for _, n := range b.namespaces {
		for _, p := range n.pods {
			for _, trouble := range podTroubles(p.last) {
				if !starting(trouble) {
					all = append(all, "pod "+p.last.Name+" "+short(trouble))
				}
			}
		}
	}
	for _, s := range b.slices {
		all = append(all, s.troubles...)
	}
	if len(all) == 0 {
		for _, s := range b.slices {
			all = append(all, s.errors...)
		}
	}
	causes := []string{}
	for _, text := range all {
		text = b.clean(suite.Shortened(strings.Join(strings.Fields(text), " "), maxCause))
		if !slices.Contains(causes, text) && len(causes) < maxCauses {
			causes = append(causes, text)
		}
	}
	return causes
}

// warnings returns the warnings among events, the most frequent first. Those with the same reason are one.
func warnings(events []event) (all []string) {
	last, count := map[string]event{}, map[string]int{}
	var reasons []string
	for _, e := range events {
		if e.Type != corev1.EventTypeWarning {
			continue
		}
		if count[e.Reason] == 0 {
			reasons = append(reasons, e.Reason)
		}
		last[e.Reason] = e
		count[e.Reason] += e.Count
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return count[b] - count[a] })
	for _, reason := range reasons {
		e := last[reason]
		text := fmt.Sprintf("%s of %s", reason, e.About)
		if count[reason] > 1 {
			text += fmt.Sprintf(" (%d times)", count[reason])
		}
		all = append(all, text+": "+e.Message)
	}
	return all
}
