package doctor

import (
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func programmedRules() []Rule {
	return []Rule{{
		ID: "services-programmed", Title: "HNS has what the cluster's Services need", Severity: finding.Error,
		Needs: []string{"programmedServices"}, Link: docsDebug,
		Means: "Clients on this node do not reach these Services, or reach pods that are not theirs: kube-proxy programs a Service " +
			"when it changes, and does not look again whether HNS still has it.",
		Remedy: "`swdt network services` lists each object with the clients that notice it, the known defects and the remedy",
		look:   lookAtProgrammed,
	}}
}

// lookAtProgrammed reports one finding for each kind of difference.
func lookAtProgrammed(f *Facts) (all []finding.Finding) {
	found := *f.Programmed.Value
	for _, kind := range kubeproxy.Kinds() {
		var names []string
		severity := finding.Info
		for _, one := range found {
			if one.Kind != kind {
				continue
			}
			if one.Severity.AtLeast(severity) {
				severity = one.Severity
			}
			name := one.At
			if one.Service != "" {
				name = one.Service + " (" + one.At + ")"
			}
			names = append(names, name)
		}
		if len(names) > 0 {
			all = append(all, finding.New(some(names), "%s: %s", finding.Several(len(names), "difference"), kind.Words()).As(severity))
		}
	}
	return all
}
