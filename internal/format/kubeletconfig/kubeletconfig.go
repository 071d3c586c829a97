// Package kubeletconfig finds the mistakes of a KubeletConfiguration, as kubelet reads it. kubelet
// has two ways to read one (DecodeKubeletConfiguration and mergeKubeletConfigurations in
// k8s.io/kubernetes, the same from 1.30 to 1.36):
//
//   - The file of --config is decoded strictly. A value of a wrong type, or another apiVersion or
//     kind, ends kubelet. If only unknown or repeated fields are wrong, kubelet logs "Using lenient
//     decoding as strict decoding failed" and ignores these fields. A field whose name differs only
//     in its case is unknown.
//   - A drop-in of --config-dir is merged over that file as JSON. A repeated field, a value of a
//     wrong type, or another apiVersion or kind, ends kubelet. kubelet ignores unknown fields and
//     logs nothing. It may read a field whose name differs only in its case, or ignore it.
//
// The fields are those of the k8s.io/kubelet that swdt is built with. An older kubelet has fewer.
package kubeletconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// The apiVersion and the kind that kubelet reads.
const (
	APIVersion = kubeletv1beta1.GroupName + "/v1beta1"
	Kind       = "KubeletConfiguration"
)

// Form is the way in which kubelet reads a text.
type Form int

// The forms of a configuration.
const (
	File   Form = iota // the file of --config
	DropIn             // a .conf file in the folder of --config-dir
)

// Mistake is a mistake of a configuration.
type Mistake struct {
	// Line is the line in the text, from 1; 0 if the mistake concerns the whole text.
	Line int
	// Field is the path of the field, such as logging.verbosity, evictionHard.memory.available or
	// registerWithTaints[0].effect; empty if the mistake concerns the whole text.
	Field  string
	What   string
	Remedy string
	// Ends reports whether kubelet exits because of the mistake. Otherwise kubelet ignores the
	// field.
	Ends bool
	// Known are the names that the parent of an unknown field has; nil for any other mistake.
	Known []string
}

// String returns "line 3: maxPods: is a text …; write a whole number without quotes".
func (m Mistake) String() string { return m.Place() + "; " + m.Remedy }

// Place returns String without the remedy.
func (m Mistake) Place() string {
	var b strings.Builder
	if m.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", m.Line)
	}
	if m.Field != "" {
		b.WriteString(m.Field + ": ")
	}
	return b.String() + m.What
}

// Marshal returns the text of a drop-in with these fields, and with the apiVersion and kind that
// kubelet reads.
func Marshal(fields map[string]any) ([]byte, error) {
	document := map[string]any{}
	for name, value := range fields {
		document[name] = value
	}
	document["apiVersion"], document["kind"] = APIVersion, Kind
	return yaml.Marshal(document)
}

// Check returns the mistakes of a configuration, sorted by line. The mistakes contain no values of
// the configuration, since these may be secret.
func Check(text []byte, form Form) []Mistake {
	if len(bytes.TrimSpace(text)) == 0 {
		return []Mistake{{What: "is empty", Remedy: "write a " + Kind, Ends: true}}
	}
	var document any
	content, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(content, &document)
	}
	if err != nil {
		return []Mistake{{What: "is not YAML: " + err.Error(), Remedy: "correct it", Ends: true}}
	}
	fields, ok := document.(map[string]any)
	if !ok {
		return []Mistake{{What: "is not a mapping of fields", Remedy: "write a " + Kind, Ends: true}}
	}
	c := checker{form: form, lines: map[string]int{}}
	c.locate(text)
	c.header(fields)
	c.value(reflect.TypeFor[kubeletv1beta1.KubeletConfiguration](), fields, "")
	slices.SortStableFunc(c.mistakes, func(a, b Mistake) int { return cmp.Compare(a.Line, b.Line) })
	return c.mistakes
}

type checker struct {
	form     Form
	lines    map[string]int // by field path
	mistakes []Mistake
}

func (c *checker) add(field, what, remedy string, ends bool) {
	c.mistakes = append(c.mistakes, Mistake{Line: c.lines[field], Field: field, What: what, Remedy: remedy, Ends: ends})
}

// header checks the fields that decide whether kubelet reads the document at all.
func (c *checker) header(fields map[string]any) {
	for _, required := range []struct{ name, value string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		switch value, ok := fields[required.name]; {
		case !ok:
			c.add(required.name, "is missing", "write "+required.name+": "+required.value, true)
		case value != required.value:
			c.add(required.name, "is not "+required.value+", the only one with which kubelet starts",
				"write "+required.name+": "+required.value, true)
		}
	}
}

// value checks a value against the type into which kubelet decodes it.
func (c *checker) value(t reflect.Type, value any, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	list, isList := value.([]any)
	fields, isMapping := value.(map[string]any)
	own := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	switch {
	case value == nil:
		return // kubelet uses its default
	case !own && t.Kind() == reflect.Struct && isMapping:
		c.structure(t, fields, path)
	case !own && t.Kind() == reflect.Map && isMapping:
		for key, element := range fields {
			c.value(t.Elem(), element, join(path, key))
		}
	case !own && t.Kind() == reflect.Slice && isList:
		for i, element := range list {
			c.value(t.Elem(), element, fmt.Sprintf("%s[%d]", path, i))
		}
	case !decodes(t, value):
		c.add(path, "is "+describe(value)+", with which kubelet does not start", "write "+wanted(t), true)
	}
}

func (c *checker) structure(t reflect.Type, fields map[string]any, path string) {
	known := fieldsOf(t)
	for name, value := range fields {
		at := join(path, name)
		if field, ok := known[name]; ok {
			c.value(field, value, at)
			continue
		}
		proper := similar(name, known)
		switch {
		case proper != "" && c.form == DropIn:
			c.add(at, "has another case than kubelet's field "+proper+", so that kubelet may ignore it",
				"write "+proper, false)
			c.value(known[proper], value, at)
		case proper != "":
			c.add(at, "has another case than kubelet's field "+proper+": kubelet ignores it", "write "+proper, false)
		default:
			c.add(at, "is not a field of "+Kind+": kubelet ignores it", "remove it, or correct its name", false)
			c.mistakes[len(c.mistakes)-1].Known = slices.Sorted(maps.Keys(known))
		}
	}
}

// decodes reports whether kubelet can decode the value into the type.
func decodes(t reflect.Type, value any) bool {
	text, err := json.Marshal(value)
	return err == nil && kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(t).Interface()) == nil
}

// fieldsOf returns the types of the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			all[name] = field.Type
		}
	}
	return all
}

// similar returns the known name that differs from name only in its case, or "".
func similar(name string, known map[string]reflect.Type) string {
	for candidate := range known {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
	}
	return ""
}

// locate records the line of each field, and reports fields that are set twice.
func (c *checker) locate(text []byte) {
	var document yamlv3.Node
	if yamlv3.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return // kubelet's parser accepts a few texts that this one refuses; these have no lines
	}
	c.locateIn(document.Content[0], "", 0)
}

// maxDepth bounds the recursion over a document, since an alias may lead into itself.
const maxDepth = 32

func (c *checker) locateIn(n *yamlv3.Node, path string, depth int) {
	if n.Kind == yamlv3.AliasNode || depth > maxDepth {
		return
	}
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := join(path, n.Content[i].Value)
			if line, twice := c.lines[at]; twice {
				c.repeated(at, n.Content[i].Line, line)
			}
			c.lines[at] = n.Content[i].Line
			c.locateIn(n.Content[i+1], at, depth+1)
		}
	case yamlv3.SequenceNode:
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			c.lines[at] = item.Line
			c.locateIn(item, at, depth+1)
		}
	}
}

func (c *checker) repeated(field string, line, first int) {
	what := fmt.Sprintf("is set twice, first on line %d, and kubelet reads the last one", first)
	if c.form == DropIn {
		what = fmt.Sprintf("is set twice, first on line %d, with which kubelet does not start", first)
	}
	c.mistakes = append(c.mistakes, Mistake{Line: line, Field: field, What: what, Remedy: "remove one of them",
		Ends: c.form == DropIn})
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
