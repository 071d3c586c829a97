package settingchange

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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
	Verb       string // what was to be done: set or read
	What, Name string
	Why        string
	Nearest    string // "": no name is near
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%s %s %s: %s", e.Verb, e.What, e.Name, e.Why)
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
	return p.unknownGate("set", w.Name)
}

// unknownGate returns the error for a gate that the version lacks. verb is what was to be done with it.
func (s *Settings) unknownGate(verb, name string) error {
	unknown := &UnknownError{Program: s.Program, Verb: verb, What: "feature gate", Name: name,
		Why: s.minorText() + " has no such gate, and ends with it"}
	removed, later := s.table.Gate(name, s.minor).Since, s.later(s.table.Gate(name, s.table.Newest()).State)
	switch {
	case later != "":
		unknown.Why += later
	case removed > 0:
		unknown.Why = fmt.Sprintf("Kubernetes 1.%d removed it, and %s ends with it", removed, s.minorText())
	default:
		unknown.Nearest = nearest(name, s.gates())
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

// OtherSettingError reports that a change of settings would change another one, too.
type OtherSettingError struct {
	Program kubesettings.Program
	Setting string
}

func (e *OtherSettingError) Error() string {
	return fmt.Sprintf("change the settings of %s: %s would change, too, which nothing asked for; change the text with an editor",
		e.Program, e.Setting)
}

// checkOthers returns an *OtherSettingError if the changed texts differ in a setting that no change is about.
func (p *Plan) checkOthers() error {
	count := map[string]int{}
	for i, facts := range []upgradecheck.Facts{p.facts, p.after()} {
		for _, is := range facts.Settings {
			if !p.means(is) {
				count[fmt.Sprintf("%s (%s)", p.nameOf(is), cmp.Or(is.Place.File, is.Place.Field))] += 1 - 2*i
			}
		}
	}
	for _, is := range slices.Sorted(maps.Keys(count)) {
		if count[is] != 0 {
			return &OtherSettingError{Program: p.Program, Setting: is}
		}
	}
	return nil
}

// means reports whether a change is about the setting, or about a field above or below it.
func (p *Plan) means(is upgradecheck.Setting) bool {
	return slices.ContainsFunc(p.meant, func(m setting) bool {
		if m.kind != upgradecheck.FieldSetting || is.Kind != m.kind {
			return is.Kind == m.kind && is.Name == m.name
		}
		inner, outer := is.Name, m.name
		if len(inner) < len(outer) {
			inner, outer = outer, inner
		}
		rest, below := strings.CutPrefix(inner, outer)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// nameOf returns a setting with its value, unless that may be secret.
func (p *Plan) nameOf(is upgradecheck.Setting) string {
	switch {
	case is.Kind == upgradecheck.FlagSetting:
		return "--" + is.Name + "=" + is.Value
	case is.Kind == upgradecheck.GateSetting:
		return "feature gate " + is.Name + "=" + is.Value
	case strings.HasPrefix(is.Name, secretField):
		return is.Name
	}
	return is.Name + ": " + is.Value
}

// check holds the changed settings against the version, by the rules of swdt upgrade check. A mistake that was
// there before is not held against the change. Of a version that the table lacks, there is nothing to hold them against.
func (p *Plan) check() error {
	if p.minor == 0 {
		return nil
	}
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

// after returns the settings of the program that the changed texts have.
func (p *Plan) after() upgradecheck.Facts {
	texts := nodesettings.Texts{Node: p.texts.Node}
	for _, d := range p.drafts {
		t := d.Text
		t.Content = d.after
		texts.All = append(texts.All, t)
	}
	return factsOf(texts, p.Program, p.table)
}
