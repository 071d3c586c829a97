package kubeletconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Change is a field that two configurations have with different values, or that one of them lacks.
type Change struct {
	// Path has the names of the field and of those that it is in.
	Path []string
	// Before and After are the values; nil: the configuration lacks the field.
	Before, After any
}

// Changes returns the fields by which after differs from before, sorted by path. A list is one value.
func Changes(before, after []byte) ([]Change, error) {
	old, err := fieldsOfText(before)
	if err != nil {
		return nil, err
	}
	wanted, err := fieldsOfText(after)
	if err != nil {
		return nil, err
	}
	return changes(nil, old, wanted), nil
}

func fieldsOfText(text []byte) (map[string]any, error) {
	fields := map[string]any{}
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("read a %s: %w", Kind, err)
	}
	return fields, nil
}

func changes(path []string, before, after map[string]any) (all []Change) {
	names := map[string]bool{}
	for _, side := range []map[string]any{before, after} {
		for name := range side {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := append(slices.Clone(path), name)
		old, oldMapping := before[name].(map[string]any)
		wanted, newMapping := after[name].(map[string]any)
		switch {
		case oldMapping && newMapping, oldMapping && after[name] == nil, before[name] == nil && newMapping:
			all = append(all, changes(at, old, wanted)...)
		case !reflect.DeepEqual(before[name], after[name]):
			all = append(all, Change{Path: at, Before: before[name], After: after[name]})
		}
	}
	return all
}

// Apply returns the configuration with these changes, and text itself if there are none.
func Apply(text []byte, all []Change) ([]byte, error) {
	if len(all) == 0 {
		return text, nil
	}
	fields, err := fieldsOfText(text)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		c.applyTo(fields)
	}
	return yaml.Marshal(fields)
}

func (c Change) applyTo(fields map[string]any) {
	last := len(c.Path) - 1
	for _, name := range c.Path[:last] {
		inner, ok := fields[name].(map[string]any)
		if !ok {
			if c.After == nil {
				return
			}
			inner = map[string]any{}
			fields[name] = inner
		}
		fields = inner
	}
	if c.After == nil {
		delete(fields, c.Path[last])
		return
	}
	fields[c.Path[last]] = c.After
}

// Field returns the path as text, such as featureGates.MemoryManager.
func (c Change) Field() string { return strings.Join(c.Path, ".") }

// Trivial reports whether kubelet takes both values as its default: a field that is missing, or has the zero value of
// its type. Programs that write a configuration in full differ in whether they write such fields.
func (c Change) Trivial() bool { return zero(c.Before) && zero(c.After) }

func zero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == "" || v == "0s"
	case float64:
		return v == 0
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// String returns a text such as "clusterDomain: cluster.local → example.com".
func (c Change) String() string {
	return c.Field() + ": " + c.value(c.Before) + " → " + c.value(c.After)
}

// Kept returns the field and the value after, such as "maxPods: 40".
func (c Change) Kept() string { return c.Field() + ": " + c.value(c.After) }

// secretField may have passwords: kubelet sends it with its request for static pods.
const secretField = "staticPodURLHeader"

func (c Change) value(value any) string {
	if value == nil {
		return "not set"
	}
	if c.Path[0] == secretField {
		return "(hidden)"
	}
	if text, ok := value.(string); ok && text != "" {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "(unreadable)"
	}
	const most = 80
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
