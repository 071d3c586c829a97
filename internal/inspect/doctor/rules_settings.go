package doctor

import (
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func settingsRules() []Rule {
	return []Rule{{
		ID: "service-settings", Title: "kubelet and kube-proxy know the settings of their services", Severity: finding.Error,
		Needs: []string{"services", "programs"},
		Link:  "https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/",
		Means: "kubelet and kube-proxy exit at once if their command line has a feature gate that their version does not know, a " +
			"value that a locked gate does not allow, or an unknown flag. They exit at their next start, too, after a push.",
		Remedy: "remove a feature gate with `swdt kubelet features unset NAME` or `swdt kube-proxy features unset NAME`, and a flag with " +
			"`swdt join` or sc.exe config kube-proxy binPath= …",
		look: lookAtSettings,
	}}
}

// lookAtSettings holds the command lines of services against the versions of their programs. The rule kubelet-flags is
// about kubelet's flags, also those of versions that the table lacks.
func lookAtSettings(f *Facts) (all []finding.Finding) {
	table, err := kubesettings.Load()
	if err != nil {
		return one(finding.New("", "%v", err))
	}
	for _, program := range []kubesettings.Program{kubesettings.Kubelet, kubesettings.KubeProxy} {
		service := f.service(string(program))
		target, err := upgradecheck.ParseTarget(table, (*f.Programs.Value)[string(program)].Version, "", "")
		if err != nil || target.Kubernetes == nil || service.Line() == "" {
			continue // an unknown version, or one that the table lacks
		}
		r := upgradecheck.NewReader(table)
		r.CommandLine(program, service.Line(), upgradecheck.Place{Node: f.Node})
		for _, found := range upgradecheck.Check(table, target, r.Facts) {
			if found.Severity == finding.Error && (program != kubesettings.Kubelet || found.Rule != upgradecheck.RuleFlagUnknown) {
				all = append(all, finding.New("service "+service.Name+": "+found.Evidence, "%s", found.What))
			}
		}
	}
	return all
}
