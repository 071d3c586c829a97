package trial

import (
	"strings"

	"github.com/swdt-dev/swdt/internal/proof/suite"
)

// Set is a named set of specs.
type Set struct {
	Name      string          `json:"name"`
	What      string          `json:"what"` // a phrase, for help
	Selection suite.Selection `json:"selection"`
}

// Sets returns all named sets. Specs for Linux alone, and those that disturb the whole cluster, are in no
// set but sig-windows. Labels select specs in every Kubernetes version since 1.29. LinuxOnly is not a
// label, but a word in the names of specs.
func Sets() []Set {
	const notHere = " && !Disruptive && !Flaky && !/^Feature:/"
	linuxOnly := []string{`\[LinuxOnly\]`}
	return []Set{
		{"sig-windows", "all specs of SIG Windows", suite.Selection{LabelFilter: "sig-windows"}},
		{"conformance", "conformance specs that Windows nodes can pass",
			suite.Selection{LabelFilter: "Conformance && !Serial && !Disruptive", Skip: linuxOnly}},
		{"network", "Services, DNS and network policies",
			suite.Selection{LabelFilter: "sig-network && !Serial" + notHere, Skip: linuxOnly}},
		{"storage", "volumes", suite.Selection{LabelFilter: "sig-storage && !Serial && !Slow" + notHere,
			Skip: []string{`\[Driver: `, `\[LinuxOnly\]`}}},
		{"smoke", "conformance specs of pods, Services and DNS that take seconds", suite.Selection{
			LabelFilter: "Conformance && !Serial && !Slow && !Disruptive", Skip: linuxOnly,
			Focus: []string{"Pods should", "DNS should", "Services should serve a basic endpoint",
				"Kubelet when scheduling"}}},
	}
}

// FindSet returns the set of this name.
func FindSet(name string) (Set, bool) {
	for _, set := range Sets() {
		if set.Name == name {
			return set, true
		}
	}
	return Set{}, false
}

// SetNames returns the names of all sets, with a comma between two.
func SetNames() string {
	var names []string
	for _, set := range Sets() {
		names = append(names, set.Name)
	}
	return strings.Join(names, ", ")
}

// Narrowed returns the selection of a set with more filters. A focus replaces the set's own, since
// Ginkgo selects specs that match any focus.
func (s Set) Narrowed(by suite.Selection) suite.Selection {
	all := s.Selection
	if len(by.Focus) > 0 {
		all.Focus = by.Focus
	}
	all.Skip = append(append([]string{}, all.Skip...), by.Skip...)
	switch {
	case by.LabelFilter != "" && all.LabelFilter != "":
		all.LabelFilter = "(" + all.LabelFilter + ") && (" + by.LabelFilter + ")"
	case by.LabelFilter != "":
		all.LabelFilter = by.LabelFilter
	}
	return all
}
