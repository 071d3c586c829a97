package doctor

import (
	"strings"

	"github.com/swdt-dev/swdt/internal/join/combination"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func patchRules() []Rule {
	return []Rule{{
		ID: combination.PatchCheck, Title: "Windows has no update that is known to break nodes", Severity: finding.Warning,
		Needs: []string{"machine"}, Link: "https://learn.microsoft.com/windows/release-health/windows-server-release-info",
		Means: "An update of Windows broke nodes of others: the finding has the report. A switch in the registry can decide whether " +
			"a node has the fault. If no source says what the node's value does, or the value is unknown, the finding says that " +
			"it cannot be determined. Windows and its services read a switch when they start: if one is set against the fault, the " +
			"finding says that it is unknown whether Windows has started since.",
		Remedy: "install a later update, or set the switch that the finding names",
		look:   lookAtPatches,
	}}
}

func lookAtPatches(f *Facts) []finding.Finding {
	p := combination.Patched{Build: f.Machine.Value.Build, Product: f.Machine.Value.Product, NoSwitches: f.Switches.why(),
		NoImages: f.Images.why()}
	if f.Switches.Value != nil {
		p.Switches = func(key, name string) (string, bool) {
			for _, s := range *f.Switches.Value {
				if strings.EqualFold(s.Key, key) && strings.EqualFold(s.Name, name) {
					return s.Value, true
				}
			}
			return "", false
		}
	}
	if f.Images.Value != nil {
		for _, image := range *f.Images.Value {
			p.Images = append(p.Images, image.OSVersion)
		}
	}
	return combination.FindPatches(p)
}
