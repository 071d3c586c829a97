package upgradecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Effect describes how a program treats a setting after the upgrade.
type Effect string

// The effects.
const (
	Exits      Effect = "exits"       // the program ends at its start
	Refused    Effect = "refused"     // the upgrade is not supported, or Windows refuses it
	Ignored    Effect = "ignored"     // the setting has no effect
	Changed    Effect = "changed"     // a default changes what the node does
	Deprecated Effect = "deprecated"  // it works, and a later version ends with it
	Untested   Effect = "unsupported" // the projects do not state that it works
)

// Finding is something that the upgrade changes.
type Finding struct {
	Rule   string `json:"rule"`
	Effect Effect `json:"effect"`
	finding.Finding
	// Since is the first version with the effect, such as 1.38; "": older than the table.
	Since string `json:"since"`
	// Source is where the fact was read.
	Source string `json:"source"`
	// Places are the places of the setting, at least one.
	Places []Place `json:"places"`
	// Setting is the setting that the finding is about, if it is about one.
	Setting Setting `json:"-"`
}

// Target has the versions to which the nodes are upgraded.
type Target struct {
	Kubernetes *version.Version // nil: not upgraded
	Containerd *version.Version // nil: not upgraded
	// Windows is a release of Windows Server such as ltsc2025; "": not upgraded.
	Windows string
}

// minor returns the minor version of Kubernetes; 0: it is not upgraded.
func (t Target) minor() int {
	if t.Kubernetes == nil {
		return 0
	}
	return int(t.Kubernetes.Minor())
}

// UnknownVersionError reports a target that the tables do not have.
type UnknownVersionError struct {
	What, Version  string
	Oldest, Newest string
}

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("%s %s: this swdt knows %s to %s", e.What, e.Version, e.Oldest, e.Newest)
}

// WindowsReleases are the releases of Windows Server that a target may name, the oldest first.
func WindowsReleases() []string { return []string{"ltsc2019", "ltsc2022", "ltsc2025"} }

// ParseTarget reads the versions of an upgrade; each may be "". A version that the tables do not have is an
// *UnknownVersionError.
func ParseTarget(table *kubesettings.Table, kubernetes, containerd, windows string) (t Target, err error) {
	if kubernetes != "" {
		if t.Kubernetes, err = version.ParseGeneric(kubernetes); err != nil {
			return t, fmt.Errorf("kubernetes %q is no version: write one such as 1.38", kubernetes)
		}
		if minor := t.minor(); t.Kubernetes.Major() != 1 || minor < table.Oldest() || minor > table.Newest() {
			return t, &UnknownVersionError{"kubernetes", kubernetes, minorText(table.Oldest()), minorText(table.Newest())}
		}
	}
	if containerd != "" {
		if t.Containerd, err = version.ParseGeneric(containerd); err != nil {
			return t, fmt.Errorf("containerd %q is no version: write one such as 2.3", containerd)
		}
		if oldest, newest := version.MajorMinor(1, 6), version.MajorMinor(2, newestContainerd); t.Containerd.LessThan(oldest) ||
			!t.Containerd.LessThan(version.MajorMinor(2, newestContainerd+1)) {
			return t, &UnknownVersionError{"containerd", containerd, oldest.String(), newest.String()}
		}
	}
	if windows != "" && !slices.Contains(WindowsReleases(), windows) {
		return t, fmt.Errorf("windows %q is no release: use one of %s", windows, strings.Join(WindowsReleases(), ", "))
	}
	t.Windows = windows
	return t, nil
}

func minorText(minor int) string { return fmt.Sprintf("1.%d", minor) }

// checking is one run of the rules.
type checking struct {
	table  *kubesettings.Table
	target Target
	facts  Facts
	found  []Finding
}

// Check returns what an upgrade to the target changes on the nodes of the facts, the worst first. Findings that differ
// only in their places are one.
func Check(table *kubesettings.Table, target Target, facts Facts) []Finding {
	c := &checking{table: table, target: target, facts: facts}
	if target.Kubernetes != nil {
		c.skew()
		for _, s := range facts.Settings {
			c.setting(s)
		}
		c.dependencies()
		c.affinity()
		c.runtimes()
	}
	c.containerd()
	c.windows()
	return grouped(c.found)
}

func (c *checking) setting(s Setting) {
	switch s.Kind {
	case GateSetting:
		c.gate(s)
	case FlagSetting:
		c.flag(s)
	case FieldSetting:
		c.field(s)
	}
}

func (c *checking) add(f Finding) { c.found = append(c.found, f) }

// addFor adds a finding about a setting. If a condition decides whether the setting is made, it is a note.
func (c *checking) addFor(s Setting, f Finding) {
	if s.Condition != "" {
		f.Severity = finding.Info
		f.What += ", if " + s.Condition + " holds"
	}
	c.add(f)
}

// grouped merges findings that differ only in their places, and sorts them by severity, then by rule.
func grouped(all []Finding) []Finding {
	type words struct{ rule, what, evidence, remedy string }
	type at struct {
		finding int
		place   Place
	}
	var merged []Finding
	indices, places := map[words]int{}, map[at]bool{}
	for _, f := range all {
		is := words{f.Rule, f.What, f.Evidence, f.Remedy}
		i, ok := indices[is]
		if !ok {
			i = len(merged)
			indices[is] = i
			merged = append(merged, f)
			merged[i].Places = nil
		}
		for _, place := range f.Places {
			if !places[at{i, place}] {
				places[at{i, place}] = true
				merged[i].Places = append(merged[i].Places, place)
			}
		}
	}
	slices.SortStableFunc(merged, func(a, b Finding) int {
		return cmp.Or(a.Severity.Compare(b.Severity), strings.Compare(a.Rule, b.Rule))
	})
	return merged
}

// program returns the program's name with the target's version, such as "kube-proxy 1.38".
func (c *checking) program(p kubesettings.Program) string {
	return string(p) + " " + minorText(c.target.minor())
}

// present returns the oldest minor version of the program that runs at a place now; 0: unknown.
func (c *checking) present(p Place) int {
	oldest := 0
	for _, n := range c.facts.Nodes {
		if p.Node != "" && p.Node != n.Name {
			continue
		}
		if v, err := version.ParseGeneric(n.Kubelet); err == nil && (oldest == 0 || int(v.Minor()) < oldest) {
			oldest = int(v.Minor())
		}
	}
	return oldest
}
