package objectfix

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/join/settingchange"
)

// A PlaceError reports a setting that cannot be removed from its place in an object.
type PlaceError struct {
	Field string
	Why   string
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("change %s: %s; change the object's source with an editor", e.Field, e.Why)
}

// edit is the removal of settings from one object.
type edit struct {
	table    *kubesettings.Table
	object   *unstructured.Unstructured // the present one; it stays as it is
	changed  *unstructured.Unstructured
	removals []upgradecheck.Removal
}

// edited returns an object without settings.
func edited(table *kubesettings.Table, live *unstructured.Unstructured, removals []upgradecheck.Removal) (*unstructured.Unstructured, error) {
	e := &edit{table: table, object: live, changed: live.DeepCopy(), removals: removals}
	before, err := e.settings(live)
	if err != nil {
		return nil, err
	}
	if isSet, _, _ := unstructured.NestedBool(live.Object, "immutable"); isSet {
		return nil, &PlaceError{Field: "immutable", Why: "the object cannot be changed; a new one with another name can"}
	}
	var fields []string // the last ones of a list first, so that the indices of the others stay
	for _, s := range before {
		if e.goes(s) && !slices.Contains(fields, s.Place.Field) {
			fields = append(fields, s.Place.Field)
		}
	}
	slices.SortFunc(fields, byIndex)
	for _, field := range fields {
		if err := e.at(field, before); err != nil {
			return nil, err
		}
	}
	return e.changed, e.verify(before)
}

// byIndex sorts fields so that later items of a list come first.
func byIndex(a, b string) int {
	_, i := indexed(a)
	_, j := indexed(b)
	return cmp.Or(cmp.Compare(j, i), cmp.Compare(a, b))
}

// indexed returns the list and the index of an item such as args[1]; -1: the field is no item.
func indexed(field string) (list string, i int) {
	at := strings.LastIndex(field, "[")
	i, err := strconv.Atoi(strings.TrimSuffix(field[max(at+1, 0):], "]"))
	if at < 0 || err != nil {
		return field, -1
	}
	return field[:at], i
}

// settings returns the settings of an object.
func (e *edit) settings(o *unstructured.Unstructured) ([]upgradecheck.Setting, error) {
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.GetName(), err)
	}
	r := upgradecheck.NewReader(e.table)
	r.Documents(text, upgradecheck.Place{})
	return r.Settings, nil
}

// goes reports whether a setting is to be removed.
func (e *edit) goes(s upgradecheck.Setting) bool {
	return s.Form != upgradecheck.Image && slices.ContainsFunc(e.removals, func(r upgradecheck.Removal) bool {
		return r.Program == s.Program && r.Kind == s.Kind && r.Name == s.Name
	})
}

// at removes the settings of one field.
func (e *edit) at(field string, all []upgradecheck.Setting) error {
	var here []upgradecheck.Setting
	for _, s := range all {
		if s.Place.Field == field && e.goes(s) {
			here = append(here, s)
		}
	}
	if key, ok := strings.CutPrefix(field, "data."); ok && e.object.GetKind() == "ConfigMap" {
		return e.inText(here, "data", key)
	}
	container, list, ok := e.container(field)
	if !ok {
		return &PlaceError{Field: field, Why: "swdt does not change settings there"}
	}
	name, i := indexed(strings.TrimSuffix(list, ".value"))
	switch items, _ := container[name].([]any); {
	case i < 0 || i >= len(items):
		return &PlaceError{Field: field, Why: "it is no item of a list"}
	case hasTwin(container["env"]) != "":
		return &PlaceError{Field: field, Why: "the container has two variables " + hasTwin(container["env"]) +
			", and an apply keeps one variable of a name"}
	case name == "command" && i == len(items)-1 && continues(items[i], container["args"]):
		return &PlaceError{Field: field, Why: "the value of the flag is the first item of args"}
	case name == "env":
		return e.variable(items[i], here)
	case here[0].Form == upgradecheck.Script:
		text, _ := items[i].(string)
		changed, err := e.stripped(here, text)
		items[i] = changed
		return err
	default:
		container[name] = withoutFlags(items, i, here)
		return nil
	}
}

// hasTwin returns the name of a variable that a list of variables has twice, quoted; "": there is none.
func hasTwin(env any) string {
	seen := map[any]bool{}
	variables, _ := env.([]any)
	for _, item := range variables {
		variable, _ := item.(map[string]any)
		if seen[variable["name"]] {
			return fmt.Sprintf("%q", variable["name"])
		}
		seen[variable["name"]] = true
	}
	return ""
}

// continues reports whether a flag that ends the command has its value in args.
func continues(flag, args any) bool {
	text, _ := flag.(string)
	items, _ := args.([]any)
	if strings.Contains(text, "=") || len(items) == 0 {
		return false
	}
	first, _ := items[0].(string)
	return commandline.IsValue(first)
}

// inText removes settings from a text of a ConfigMap.
func (e *edit) inText(here []upgradecheck.Setting, path ...string) error {
	text, _, err := unstructured.NestedString(e.changed.Object, path...)
	if err != nil {
		return fmt.Errorf("change %s: %w", strings.Join(path, "."), err)
	}
	changed, err := e.stripped(here, text)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(e.changed.Object, changed, path...)
}

// stripped returns a configuration file or a script without settings.
func (e *edit) stripped(here []upgradecheck.Setting, text string) (string, error) {
	field := here[0].Place.Field
	for _, p := range []kubesettings.Program{kubesettings.Kubelet, kubesettings.KubeProxy} {
		var wishes []settingchange.Wish
		kind := nodesettings.ConfigFile
		for _, s := range here {
			if s.Program != p {
				continue
			}
			if s.Form == upgradecheck.Script {
				kind = nodesettings.Script
			}
			wish := settingchange.Wish{Kind: s.Kind, Name: s.Name, Unset: true}
			if !slices.Contains(wishes, wish) {
				wishes = append(wishes, wish)
			}
		}
		if len(wishes) == 0 {
			continue
		}
		content, err := settingchange.Strip(nodesettings.Text{Program: p, Kind: kind, Path: field, Content: []byte(text)}, wishes, e.table)
		var line *settingchange.LineError
		switch {
		case errors.As(err, &line):
			return "", &PlaceError{Field: fmt.Sprintf("%s, line %d", field, line.Line), Why: line.What}
		case err != nil:
			return "", err
		}
		text = string(content)
	}
	return text, nil
}

// container returns the container of a field such as spec.template.spec.containers[0].args[1], and the rest of the field.
func (e *edit) container(field string) (container map[string]any, rest string, ok bool) {
	found := regexp.MustCompile(`^spec\.template\.spec\.(containers|initContainers)\[(\d+)\]\.(.+)$`).FindStringSubmatch(field)
	if found == nil {
		return nil, "", false
	}
	list, _, err := unstructured.NestedFieldNoCopy(e.changed.Object, "spec", "template", "spec", found[1])
	containers, _ := list.([]any)
	i, _ := strconv.Atoi(found[2])
	if err != nil || i >= len(containers) {
		return nil, "", false
	}
	container, ok = containers[i].(map[string]any)
	return container, found[3], ok
}

// variable removes settings from the value of a variable.
func (e *edit) variable(item any, here []upgradecheck.Setting) error {
	variable, _ := item.(map[string]any)
	text, _ := variable["value"].(string)
	if !strings.HasPrefix(text, "--") { // gates alone
		for _, s := range here {
			text, _ = settingchange.WithoutGate(text, s.Name)
		}
		variable["value"] = text
		return nil
	}
	fields := strings.Fields(text)
	if strings.ContainsAny(text, `'"`) || strings.Join(fields, " ") != text {
		return &PlaceError{Field: here[0].Place.Field, Why: "its arguments are quoted, or not separated by single spaces"}
	}
	words := make([]any, 0, len(fields))
	for _, word := range fields {
		words = append(words, word)
	}
	for i := len(words) - 1; i >= 0; i-- {
		words = withoutFlags(words, i, here)
	}
	left := make([]string, 0, len(words))
	for _, word := range words {
		left = append(left, fmt.Sprint(word))
	}
	variable["value"] = strings.Join(left, " ")
	return nil
}

// withoutFlags returns arguments without the settings of the flag that the item i begins.
func withoutFlags(items []any, i int, here []upgradecheck.Setting) []any {
	text, _ := items[i].(string)
	written, value, together := strings.Cut(text, "=")
	name := strings.ReplaceAll(strings.TrimLeft(written, "-"), "_", "-")
	last := i // of the flag's items
	if !together && i+1 < len(items) {
		if next, _ := items[i+1].(string); commandline.IsValue(next) && !isOperator(next) {
			last, value = i+1, next
		}
	}
	keep := true
	for _, s := range here {
		switch {
		case s.Kind == upgradecheck.GateSetting && name == "feature-gates":
			value, keep = settingchange.WithoutGate(value, s.Name)
		case s.Kind == upgradecheck.FlagSetting && name == s.Name:
			keep = false
		}
	}
	switch {
	case !keep:
		return slices.Delete(slices.Clone(items), i, last+1)
	case last > i:
		items[last] = value
	case together:
		items[i] = written + "=" + value
	}
	return items
}

// isOperator reports whether an argument is one with which cmd.exe or PowerShell ends a command.
func isOperator(arg string) bool { return arg != "" && strings.Trim(arg, "&|;<>") == "" }

// verify returns an error unless the changed object lacks the removed settings and has all others.
func (e *edit) verify(before []upgradecheck.Setting) error {
	after, err := e.settings(e.changed)
	if err != nil {
		return err
	}
	type setting struct {
		program kubesettings.Program
		kind    upgradecheck.Kind
		name    string
		value   string
		form    upgradecheck.Form
	}
	count := map[setting]int{}
	for i, all := range [][]upgradecheck.Setting{before, after} {
		for _, s := range all {
			if !e.goes(s) || i == 1 {
				count[setting{s.Program, s.Kind, s.Name, s.Value, s.Form}] += 1 - 2*i
			}
		}
	}
	for s, n := range count {
		if n != 0 && !(s.kind == upgradecheck.FieldSetting && s.value == "") { // a mapping may be gone with its last field
			return &PlaceError{Field: s.name, Why: "more than the removed settings would change"}
		}
	}
	return nil
}
