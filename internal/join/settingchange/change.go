package settingchange

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// Wish is a setting that is to change.
type Wish struct {
	Kind  upgradecheck.Kind
	Name  string // of a gate or a flag, or the path of a field
	Value string // of a gate true or false, of a field a text or YAML
	Unset bool   // the setting is to go
}

// Plan is a change of settings that was checked.
type Plan struct {
	*editing
	// Changes are the settings that change, in the order of the wishes.
	Changes []Change

	meant []setting // those that Changes are about
}

// setting names a setting.
type setting struct {
	kind upgradecheck.Kind
	name string
}

// Change is a setting that changes.
type Change struct {
	Name   string `json:"name"`
	Before string `json:"before"` // "": it is not set; an empty text is two quotes
	After  string `json:"after"`  // as Before
	Where  string `json:"where"`
}

// Plan returns the change that the wishes mean. Wishes that are fulfilled change nothing. An error means that a wish is
// refused. Of a version that the table lacks, settings can only be removed.
func (s *Settings) Plan(wishes []Wish) (*Plan, error) {
	sets := slices.ContainsFunc(wishes, func(w Wish) bool { return !w.Unset })
	if s.minor == 0 && sets {
		return nil, fmt.Errorf("check the settings of %s %s: this swdt knows those of 1.%d to 1.%d; `swdt push` brings another "+
			"version", s.Program, orUnknown(s.Version), s.table.Oldest(), s.table.Newest())
	}
	p := &Plan{editing: s.begin()}
	for _, w := range wishes {
		change := p.gate
		switch w.Kind {
		case upgradecheck.FieldSetting:
			change = p.field
		case upgradecheck.FlagSetting:
			change = p.removeFlag
		}
		if err := change(w); err != nil {
			return nil, err
		}
	}
	if err := p.checkOthers(); err != nil {
		return nil, err
	}
	return p, p.check()
}

func orUnknown(version string) string {
	if version == "" {
		return "of an unknown version"
	}
	return version
}

// note records a change of a setting at a place.
func (p *Plan) note(kind upgradecheck.Kind, name, before, after string, d *draft) {
	where := d.Path
	if where == "" {
		where = "service " + string(p.Program)
	}
	p.meant = append(p.meant, setting{kind, name})
	switch kind {
	case upgradecheck.GateSetting:
		name = "feature gate " + name
	case upgradecheck.FlagSetting:
		name = "--" + name
	}
	p.Changes = append(p.Changes, Change{Name: name, Before: before, After: after, Where: where})
}

// gate sets or unsets a feature gate.
func (p *Plan) gate(w Wish) error {
	if w.Unset {
		return p.removeGate(w.Name)
	}
	if err := p.checkGate(w); err != nil {
		return err
	}
	is := p.effective(upgradecheck.GateSetting, w.Name)
	if is != nil && is.Value == w.Value {
		return nil
	}
	name, before := "feature gate "+w.Name, ""
	d := p.first(nodesettings.ConfigFile)
	if is != nil {
		before, d = is.Value, p.draftAt(is.Place)
	}
	line := p.first(nodesettings.CommandLine)
	switch {
	case d == nil && line == nil:
		return fmt.Errorf("set %s: %s has no configuration file, and a script starts it; add --config to the script", name, p.Program)
	case d == nil || d.Kind == nodesettings.CommandLine:
		d = line
		if err := p.gateOnLine(d, w); err != nil {
			return err
		}
	case d.isYAML():
		if err := d.setYAML([]string{"featureGates", w.Name}, w.Value == "true"); err != nil {
			return err
		}
	default:
		if err := p.gateInScript(d, *is, w.Value); err != nil {
			return err
		}
	}
	p.note(upgradecheck.GateSetting, w.Name, before, w.Value, d)
	return nil
}

// gateOnLine sets a gate in the last --feature-gates of the command line, which wins over others.
func (p *Plan) gateOnLine(d *draft, w Wish) error {
	found := false
	err := p.changeLine(d, func() changer {
		last := true
		return func(value string) (string, bool) {
			found = true
			if !last {
				return value, true
			}
			last = false
			return withGate(value, w.Name, w.Value)
		}
	}, gatesFlag, writtenGates)
	if err != nil || found {
		return err
	}
	return p.addToLine(d, gatesFlag, w.Name+"="+w.Value)
}

func (p *Plan) gateInScript(d *draft, is upgradecheck.Setting, value string) error {
	return d.editLine(is.Place.Line, func(s script) (string, error) { return s.gate(is.Name, value) })
}

// removeGate removes a gate wherever it is set, also where the program ignores it.
func (p *Plan) removeGate(name string) error {
	for _, is := range p.facts.Settings {
		d := p.draftAt(is.Place)
		if is.Kind != upgradecheck.GateSetting || is.Name != name || d == nil {
			continue
		}
		var err error
		switch {
		case d.isYAML():
			err = d.setYAML([]string{"featureGates", name}, nil)
		case d.Kind == nodesettings.CommandLine:
			err = p.changeLine(d, each(func(value string) (string, bool) { return withGate(value, name, "") }), gatesFlag, writtenGates)
		default:
			err = p.gateInScript(d, is, "")
		}
		if err != nil {
			return err
		}
		p.note(upgradecheck.GateSetting, name, is.Value, "", d)
	}
	return nil
}

// field sets or unsets a field of the configuration. If a flag sets it too, which wins, the flag changes.
func (p *Plan) field(w Wish) error {
	f, err := kubeletconfig.Lookup(p.document(), w.Name)
	if w.Unset {
		if err != nil { // a file may have it all the same
			f = kubeletconfig.Field{Path: strings.Split(w.Name, ".")}
		}
		if err := p.noGate(f.Path[0], w.Name); err != nil {
			return err
		}
		return p.removeField(f)
	}
	if err = p.knownField("set", f, w.Name, err); err != nil {
		return err
	}
	value, err := f.Parse(w.Value)
	if err != nil {
		return fmt.Errorf("set %w", err)
	}
	if is := p.effective(upgradecheck.FlagSetting, p.flagOf(f.Declared)); is != nil {
		return p.setFlag(f, *is, w.Value)
	}
	d := p.first(nodesettings.ConfigFile)
	if is := p.effective(upgradecheck.FieldSetting, f.Declared); is != nil {
		d = p.draftAt(is.Place)
	}
	if d == nil {
		return fmt.Errorf("set the field %s: %s has no configuration file; name one with --config", w.Name, p.Program)
	}
	before, err := d.value(f)
	if err != nil {
		return err
	}
	content := d.after
	if err := d.setYAML(f.Path, value); err != nil {
		return err
	}
	after, err := d.value(f)
	if err != nil || reflect.DeepEqual(after, before) {
		d.after = content // the same value, written in another form
		return err
	}
	p.note(upgradecheck.FieldSetting, w.Name, shown(f, before), shown(f, after), d)
	return nil
}

func (p *Plan) removeField(f kubeletconfig.Field) error {
	for _, d := range p.drafts {
		if !d.isYAML() {
			continue
		}
		before, err := d.value(f)
		if err == nil {
			err = d.setYAML(f.Path, nil)
		}
		if err != nil {
			return err
		}
		if before != nil {
			p.note(upgradecheck.FieldSetting, strings.Join(f.Path, "."), shown(f, before), "", d)
		}
	}
	if flag := p.flagOf(f.Declared); flag != "" && len(f.Path) == strings.Count(f.Declared, ".")+1 {
		return p.removeFlag(Wish{Kind: upgradecheck.FlagSetting, Name: flag, Unset: true})
	}
	return nil
}

// setFlag gives the flag that wins over a field another value.
func (p *Plan) setFlag(f kubeletconfig.Field, is upgradecheck.Setting, value string) error {
	if strings.ContainsAny(value, "[]{}\n") || len(f.Path) > strings.Count(f.Declared, ".")+1 {
		return fmt.Errorf("set %s: the flag --%s=%s wins over the field, and has another form: remove the flag first with %s",
			strings.Join(f.Path, "."), is.Name, is.Value, remedy.Command(string(p.Program), "config", "unset", f.Declared))
	}
	d := p.draftAt(is.Place)
	if d == nil {
		return nil
	}
	before := p.written(d, is)
	if before == quoted(value) {
		return nil
	}
	if err := p.changeFlag(d, is, func(string) (string, bool) { return value, true }); err != nil {
		return err
	}
	p.note(upgradecheck.FlagSetting, is.Name, before, quoted(value), d)
	return nil
}

// removeFlag removes a flag wherever it is written.
func (p *Plan) removeFlag(w Wish) error {
	for _, is := range p.facts.Settings {
		d := p.draftAt(is.Place)
		if is.Kind != upgradecheck.FlagSetting || is.Name != w.Name || d == nil {
			continue
		}
		before := p.written(d, is)
		if err := p.changeFlag(d, is, func(string) (string, bool) { return "", false }); err != nil {
			return err
		}
		p.note(upgradecheck.FlagSetting, w.Name, before, "", d)
	}
	return nil
}

// written returns the value of a flag as its text has it. It is true if the flag has none.
func (p *Plan) written(d *draft, is upgradecheck.Setting) string {
	value, found := is.Value, false
	err := p.changeFlag(d, is, func(at string) (string, bool) {
		if !found { // the last one, which counts
			value, found = at, true
		}
		return at, true
	})
	if err != nil {
		return quoted(is.Value)
	}
	return quoted(value)
}

// quoted returns a value as it is shown: an empty text is two quotes.
func quoted(value string) string {
	if value == "" {
		return `""`
	}
	return value
}

func (p *Plan) changeFlag(d *draft, is upgradecheck.Setting, change changer) error {
	if d.Kind == nodesettings.CommandLine {
		return p.changeLine(d, each(change), is.Name, strings.ReplaceAll(is.Name, "-", "_"))
	}
	return d.editLine(is.Place.Line, func(s script) (string, error) { return s.flag(is.Name, change) })
}

// knownField returns an error unless the version has the field. verb is what is to be done with it, and unknown the error
// of a type that is newer or older.
func (p *Plan) knownField(verb string, f kubeletconfig.Field, path string, unknown error) error {
	failed := &UnknownError{Program: p.Program, Verb: verb, What: "field", Name: path, Why: p.minorText() + " has no field " + path}
	var none *kubeletconfig.UnknownFieldError
	if errors.As(unknown, &none) {
		failed.Nearest = nearest(path, none.Known)
		return failed
	}
	if err := p.noGate(f.Declared, path); err != nil {
		return err
	}
	if state := p.table.Field(p.Program, f.Declared, p.minor); !state.Known && p.minor > 0 {
		failed.Why += p.later(p.table.Field(p.Program, f.Declared, p.table.Newest()))
		return failed
	}
	return unknown
}

// noGate returns an error if a field is the one of feature gates.
func (p *Plan) noGate(field, path string) error {
	if field != "featureGates" {
		return nil
	}
	return fmt.Errorf("change %s: feature gates have a command of their own: %s", path,
		remedy.Command(string(p.Program), "features", "get"))
}

// later returns since when versions have a setting that this version lacks.
func (s *Settings) later(newest kubesettings.State) string {
	if newest.Known && newest.Since > s.minor {
		return fmt.Sprintf("; it is one since 1.%d", newest.Since)
	}
	return ""
}
