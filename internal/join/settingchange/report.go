package settingchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report has the settings of one program on nodes.
type Report struct {
	Nodes []NodeReport `json:"nodes"`

	results []fleet.Result[Listing]
}

// NodeReport has the settings of one node.
type NodeReport struct {
	fleet.Outcome
	// Version is that of the program; "": unknown.
	Version  string    `json:"version"`
	Settings []Setting `json:"settings"`
}

// Setting is a feature gate, or a field of the configuration.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // a text, or JSON; "": it is not set, and has no default that swdt knows
	// Default is the default of a gate in the version: true or false; "": unknown.
	Default string `json:"default"`
	// Before is the value in the file before the last change, which diff compares; "": it was not set, or not compared.
	Before string   `json:"before"`
	Stage  string   `json:"stage"` // of a gate: alpha, beta, ga or deprecated; "": unknown
	Set    bool     `json:"set"`   // it is set somewhere
	Where  []string `json:"where"` // the place that counts, and behind it those that it wins over
	Note   string   `json:"note"`  // why the program ends with the setting, or ignores it; "": it takes it
}

// Listing is the settings of one node.
type Listing struct {
	Version  string
	Settings []Setting

	kind table
}

// NewReport returns the report of nodes.
func NewReport(results []fleet.Result[Listing]) Report {
	report := Report{Nodes: []NodeReport{}, results: results}
	for _, r := range results {
		report.Nodes = append(report.Nodes, NodeReport{r.Outcome(), r.Value.Version, append([]Setting{}, r.Value.Settings...)})
	}
	return report
}

// WriteText writes the settings of all nodes that answered.
func (r Report) WriteText(p *ui.Page) error {
	return fleet.WriteListings(p, r.results, func(l Listing) ui.Listing {
		t := ui.Listing{Nothing: "nothing is set", Header: l.kind.columns()(p.Wide)}
		for _, s := range l.Settings {
			t.Rows = append(t.Rows, s.row(l.kind, p.Wide))
		}
		return t
	})
}

// table is a kind of table.
type table int

const (
	gates   table = iota // feature gates
	fields               // fields that are set
	changed              // fields before and after the last change
)

func (k table) columns() func(wide bool) []string {
	return [...]func(bool) []string{GateColumns, FieldColumns, ChangeColumns}[k]
}

// GateColumns returns the columns of a table of feature gates.
func GateColumns(wide bool) []string {
	if wide {
		return []string{"NAME", "VALUE", "DEFAULT", "STAGE", "WHERE", "NOTE"}
	}
	return []string{"NAME", "VALUE", "DEFAULT", "WHERE"}
}

// FieldColumns returns the columns of a table of fields.
func FieldColumns(wide bool) []string {
	if wide {
		return []string{"NAME", "VALUE", "WHERE", "NOTE"}
	}
	return []string{"NAME", "VALUE", "WHERE"}
}

// ChangeColumns returns the columns of a table of changed fields.
func ChangeColumns(bool) []string { return []string{"NAME", "VALUE", "BEFORE", "WHERE"} }

func (s Setting) row(kind table, wide bool) []string {
	where := strings.Join(s.Where, ", before ")
	if !wide && s.Note != "" {
		where = strings.TrimPrefix(where+": "+s.Note, ": ")
	}
	var row []string
	switch kind {
	case changed:
		return []string{s.Name, orNotSet(s.Value), orNotSet(s.Before), where}
	case fields:
		row = []string{s.Name, orNotSet(s.Value), where}
	case gates:
		row = []string{s.Name, orNotSet(s.Value), s.Default}
		if wide {
			row = append(row, s.Stage)
		}
		row = append(row, where)
	}
	if wide {
		row = append(row, s.Note)
	}
	return row
}

// Gates returns the feature gates with these names, or all that the version has and that are set.
func (s *Settings) Gates(names []string) (Listing, error) {
	l := Listing{Version: s.Version}
	all := names
	if len(all) == 0 {
		all = s.gates()
		for _, is := range s.facts.Settings {
			if is.Kind == upgradecheck.GateSetting && !slices.Contains(all, is.Name) {
				all = append(all, is.Name)
			}
		}
		slices.Sort(all)
	}
	for _, name := range all {
		g := s.gateSetting(name)
		if !g.Set && g.Stage == "" && s.minor > 0 {
			p := Plan{editing: &editing{Settings: s}}
			return Listing{}, p.unknownGate("read", name)
		}
		l.Settings = append(l.Settings, g)
	}
	return l, nil
}

// ChangedGates returns the feature gates whose value is not the version's default, and those that it does not take.
func (s *Settings) ChangedGates() (Listing, error) {
	all, err := s.Gates(nil)
	all.Settings = slices.DeleteFunc(all.Settings, func(g Setting) bool {
		return g.Note == "" && (!g.Set || g.Value == g.Default)
	})
	return all, err
}

func (s *Settings) gateSetting(name string) Setting {
	is := Setting{Name: name, Where: []string{}}
	if g := s.table.Gate(name, s.minor); g.Known {
		is.Default, is.Stage = fmt.Sprint(g.On), g.Stage
		is.Value = is.Default
	}
	is.Note = s.noteOf(upgradecheck.GateSetting, name)
	if counts := s.effective(upgradecheck.GateSetting, name); counts != nil {
		is.Value = counts.Value
	}
	is.Where = s.places(upgradecheck.GateSetting, name)
	is.Set = len(is.Where) > 0
	return is
}

// places returns where a setting is made, the place that counts first.
func (s *Settings) places(kind upgradecheck.Kind, name string) []string {
	where := []string{}
	counts := s.effective(kind, name)
	for i := range s.facts.Settings {
		is := &s.facts.Settings[i]
		if is.Kind != kind || is.Name != name {
			continue
		}
		place := is.Place
		place.Node = ""
		if is == counts {
			where = slices.Insert(where, 0, place.String())
		} else {
			where = append(where, place.String())
		}
	}
	return slices.Compact(where)
}

// noteOf returns what the rules of swdt upgrade check find about a setting in the present version; "": nothing.
func (s *Settings) noteOf(kind upgradecheck.Kind, name string) string {
	target, err := upgradecheck.ParseTarget(s.table, fmt.Sprintf("1.%d", s.minor), "", "")
	if err != nil {
		return ""
	}
	own := upgradecheck.Facts{Settings: slices.DeleteFunc(slices.Clone(s.facts.Settings), func(is upgradecheck.Setting) bool {
		return is.Kind != kind || is.Name != name
	})}
	if len(own.Settings) == 0 {
		return ""
	}
	for _, f := range upgradecheck.Check(s.table, target, own) {
		if f.Effect == upgradecheck.Exits || f.Effect == upgradecheck.Ignored {
			return f.What
		}
	}
	return ""
}

// Fields returns the fields with these paths, or all that are set.
func (s *Settings) Fields(paths []string) (Listing, error) {
	l := Listing{Version: s.Version, kind: fields}
	p := Plan{editing: s.begin()}
	for _, path := range paths {
		f, err := kubeletconfig.Lookup(s.document(), path)
		if err != nil {
			return Listing{}, p.knownField("read", f, path, err)
		}
		is, err := p.fieldSetting(f)
		if err != nil {
			return Listing{}, err
		}
		l.Settings = append(l.Settings, is)
	}
	if len(paths) > 0 {
		return l, nil
	}
	seen := map[string]bool{}
	for _, is := range s.facts.Settings {
		name, _, isElement := strings.Cut(is.Name, "[]")
		if is.Kind != upgradecheck.FieldSetting || seen[name] || !isElement && s.table.HasFields(s.Program, name) {
			continue
		}
		seen[name] = true
		f, err := kubeletconfig.Lookup(s.document(), name)
		if err != nil { // the program ignores it
			f = kubeletconfig.Field{Path: strings.Split(name, ".")}
			value, err := p.draftAt(is.Place).value(f)
			if err != nil {
				return Listing{}, err
			}
			l.Settings = append(l.Settings, Setting{Name: name, Value: shown(f, value), Set: true,
				Where: s.places(is.Kind, name), Note: s.noteOf(is.Kind, name)})
			continue
		}
		listed, err := p.fieldSetting(f)
		if err != nil {
			return Listing{}, err
		}
		l.Settings = append(l.Settings, listed)
	}
	slices.SortStableFunc(l.Settings, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	return l, nil
}

// ChangedFields returns the fields that the last change of the program's settings has changed in its files.
func (s *Settings) ChangedFields(ctx context.Context, n *node.Node) (Listing, error) {
	l := Listing{Version: s.Version, kind: changed}
	_, replaced, err := s.begin().lastChange(ctx, n)
	if none := (*NothingToUndoError)(nil); errors.As(err, &none) {
		return l, nil
	}
	for _, r := range replaced {
		if !r.isYAML() {
			continue
		}
		changes, err := kubeletconfig.Changes(r.before, r.Content)
		if err != nil {
			return l, r.named(err)
		}
		for _, c := range changes {
			f := kubeletconfig.Field{Path: c.Path}
			l.Settings = append(l.Settings, Setting{Name: c.Field(), Value: shown(f, c.After), Before: shown(f, c.Before),
				Set: c.After != nil, Where: []string{r.Path}})
		}
	}
	return l, err
}

// fieldSetting returns a field with its value: that of a flag, or that of the file that counts.
func (p *Plan) fieldSetting(f kubeletconfig.Field) (Setting, error) {
	is := Setting{Name: strings.Join(f.Path, "."), Where: p.places(upgradecheck.FieldSetting, f.Declared),
		Note: p.noteOf(upgradecheck.FieldSetting, f.Declared)}
	if counts := p.effective(upgradecheck.FieldSetting, f.Declared); counts != nil {
		value, err := p.draftAt(counts.Place).value(f)
		if err != nil {
			return is, err
		}
		is.Value, is.Set = shown(f, value), value != nil
	}
	if flag := p.effective(upgradecheck.FlagSetting, p.flagOf(f.Declared)); flag != nil {
		place := flag.Place
		place.Node = ""
		is.Value, is.Set = p.written(p.draftAt(flag.Place), *flag), true
		is.Where = slices.Insert(is.Where, 0, place.String()+" --"+flag.Name)
	}
	return is, nil
}

// secretField may have passwords: kubelet sends it with its request for static pods.
const secretField = "staticPodURLHeader"

// shown returns a value of a field as text; "": it is not set.
func shown(f kubeletconfig.Field, value any) string {
	if value == nil {
		return ""
	}
	if f.Path[0] == secretField {
		return "(hidden)"
	}
	if text, ok := value.(string); ok {
		return quoted(text)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "(unreadable)"
	}
	return string(text)
}
