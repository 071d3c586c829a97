package cni

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Difference is the change that an apply makes to one object. If Create is false and Fields is
// empty, the object is already as wanted.
type Difference struct {
	Object Ref     `json:"object"`
	Create bool    `json:"create"` // true if the object does not exist yet
	Fields []Field `json:"fields"` // the fields that change, if the object exists

	wanted *unstructured.Unstructured
	forced bool // if true, apply also takes fields that other managers own
}

// Field is a field that changes.
type Field struct {
	Path string `json:"path"` // .spec.calicoNetwork.bgp
	From string `json:"from"` // the present value as JSON; "" if the field is not set
	To   string `json:"to"`   // the new value as JSON; "" if the field is removed
}

// Needed reports whether the object differs from the wanted one.
func (d Difference) Needed() bool { return d.Create || len(d.Fields) > 0 }

// Limits of a difference's text. A CustomResourceDefinition has ten thousand lines.
const (
	maxShownLines = 60
	maxShownValue = 160 // runes
)

// String returns the difference for people. An object to create is shown as YAML with "+ " before
// each line, an object to change with one line for each field.
func (d Difference) String() string {
	var lines []string
	if d.Create {
		lines = append(lines, "create "+d.Object.String())
		if text, err := yaml.Marshal(d.wanted.Object); err == nil {
			for line := range strings.Lines(string(text)) {
				lines = append(lines, "  + "+strings.TrimRight(line, "\n"))
			}
		}
	} else {
		lines = append(lines, "change "+d.Object.String())
		for _, f := range d.Fields {
			lines = append(lines, "  "+f.String())
		}
	}
	if more := len(lines) - maxShownLines; more > 0 {
		lines = append(lines[:maxShownLines], fmt.Sprintf("  … and %d more lines", more))
	}
	return strings.Join(lines, "\n")
}

// String returns the field for people, such as .spec.calicoNetwork.bgp: "Enabled" → "Disabled".
func (f Field) String() string {
	switch {
	case f.From == "":
		return fmt.Sprintf("+ %s: %s", f.Path, shortened(f.To))
	case f.To == "":
		return fmt.Sprintf("- %s: %s", f.Path, shortened(f.From))
	}
	return fmt.Sprintf("~ %s: %s → %s", f.Path, shortened(f.From), shortened(f.To))
}

func shortened(value string) string {
	if runes := []rune(value); len(runes) > maxShownValue {
		return string(runes[:maxShownValue]) + "…"
	}
	return value
}

// compare returns the fields in which two objects differ. It ignores the fields that the API
// server maintains.
func compare(from, to *unstructured.Unstructured) []Field {
	return appendFields(nil, "", withoutServerFields(from), withoutServerFields(to))
}

func withoutServerFields(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	delete(o.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	return o.Object
}

func appendFields(all []Field, path string, from, to any) []Field {
	if reflect.DeepEqual(from, to) {
		return all
	}
	a, aIsMap := from.(map[string]any)
	b, bIsMap := to.(map[string]any)
	if aIsMap && bIsMap {
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			all = appendFields(all, path+"."+key, a[key], b[key])
		}
		return all
	}
	x, xIsList := from.([]any)
	y, yIsList := to.([]any)
	if xIsList && yIsList && len(x) == len(y) {
		for i := range x {
			all = appendFields(all, fmt.Sprintf("%s[%d]", path, i), x[i], y[i])
		}
		return all
	}
	return append(all, Field{Path: path, From: inJSON(from), To: inJSON(to)})
}

func inJSON(value any) string {
	if value == nil {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
