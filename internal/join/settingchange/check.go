package settingchange

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// UnknownError reports a gate or a field that the version does not have.
type UnknownError struct {
	Program    kubesettings.Program
	What, Name string
	Why        string
	Nearest    string // "": no name is near
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("set %s %s: %s", e.What, e.Name, e.Why)
	if e.Nearest != "" {
		return text + "; did you mean " + e.Nearest + "?"
	}
	return text + "; " + remedyOfName(e.Program, e.What)
}

func remedyOfName(p kubesettings.Program, what string) string {
	if what == "field" {
		return remedy.Command(string(p), "config", "get") + " lists the fields that are set"
	}
	return remedy.Command(string(p), "features", "get") + " lists those that it has"
}

// LockedError reports a value that a locked gate does not allow.
type LockedError struct {
	Name, Version string
	On            bool
	Since         int // minor version
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("set feature gate %s: it is locked to %t in %s, since 1.%d, and the program ends with another value; "+
		"leave it out", e.Name, e.On, e.Version, e.Since)
}

// nearest returns the candidate that a name probably means; "": none.
func nearest(name string, candidates []string) (found string) {
	best := len(name)/4 + 2
	for _, candidate := range candidates {
		if d := config.EditDistance(strings.ToLower(name), strings.ToLower(candidate)); d < best {
			found, best = candidate, d
		}
	}
	return found
}

// checkGate returns an error unless the version takes the gate's value.
func (p *Plan) checkGate(w Wish) error {
	g := p.table.Gate(w.Name, p.minor)
	if g.Known && g.Locked && g.On != (w.Value == "true") {
		return &LockedError{Name: w.Name, Version: p.minorText(), On: g.On, Since: g.Since}
	}
	if g.Known {
		return nil
	}
	unknown := &UnknownError{Program: p.Program, What: "feature gate", Name: w.Name, Why: p.minorText() + " has no such gate, and ends with it"}
	switch later := p.later(p.table.Gate(w.Name, p.table.Newest()).State); {
	case later != "":
		unknown.Why += later
	case g.Since > 0:
		unknown.Why = fmt.Sprintf("Kubernetes 1.%d removed it, and %s ends with it", g.Since, p.minorText())
	default:
		unknown.Nearest = nearest(w.Name, p.gates())
	}
	return unknown
}

// gates returns the names of the gates that the version has.
func (s *Settings) gates() (names []string) {
	for _, name := range s.table.Gates() {
		if s.table.Gate(name, s.minor).Known {
			names = append(names, name)
		}
	}
	return names
}

// RefusedError reports settings with which the program would end.
type RefusedError struct{ Finding upgradecheck.Finding }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("change %s: %s; %s", e.Finding.Evidence, e.Finding.What, e.Finding.Remedy)
}

// check holds the changed settings against the version, by the rules of swdt upgrade check. A mistake that was
// there before is not held against the change.
func (p *Plan) check() error {
	target, err := upgradecheck.ParseTarget(p.table, fmt.Sprintf("1.%d", p.minor), "", "")
	if err != nil {
		return err
	}
	before := map[string]bool{}
	for _, f := range upgradecheck.Check(p.table, target, p.facts) {
		before[f.Rule+f.What] = true
	}
	for _, f := range upgradecheck.Check(p.table, target, p.after()) {
		if f.Severity == finding.Error && f.Effect == upgradecheck.Exits && !before[f.Rule+f.What] {
			return &RefusedError{Finding: f}
		}
	}
	return nil
}

// after returns the settings that the changed texts have.
func (p *Plan) after() upgradecheck.Facts {
	texts := nodesettings.Texts{Node: p.texts.Node}
	for _, d := range p.drafts {
		t := d.Text
		t.Content = d.after
		texts.All = append(texts.All, t)
	}
	return texts.Facts(p.table)
}
