package kubeletconfig

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Field is a field of a configuration.
type Field struct {
	// Path has the names on the way to the field. If a field on the way is a mapping of names to values, the last element
	// is a key of it.
	Path []string
	// Declared is the path without the key of a mapping, such as evictionHard for evictionHard.memory.available.
	Declared string

	kind reflect.Type
}

// UnknownFieldError reports a path that a type of configuration does not have.
type UnknownFieldError struct {
	Path  string
	Known []string // the paths of the fields beside it
}

func (e *UnknownFieldError) Error() string { return "there is no field " + e.Path }

// ValueError reports a value that a program does not decode into a field.
type ValueError struct{ Path, What, Remedy string }

func (e *ValueError) Error() string { return e.Path + ": " + e.What + "; " + e.Remedy }

// Lookup returns the field with this path of a type into which a program decodes its configuration, such as
// evictionHard.memory.available of KubeletConfiguration. The error is an *UnknownFieldError.
func Lookup(document reflect.Type, path string) (Field, error) {
	f := Field{kind: document}
	if trimmed := strings.TrimRight(path, "."); trimmed != path { // an empty element, which no field has
		return f, &UnknownFieldError{Path: path, Known: []string{trimmed}}
	}
	for rest := path; rest != ""; {
		for f.kind.Kind() == reflect.Pointer {
			f.kind = f.kind.Elem()
		}
		name, after, _ := strings.Cut(rest, ".")
		switch f.kind.Kind() {
		case reflect.Struct:
			known := fieldsOf(f.kind)
			next, ok := known[name]
			if !ok || len(f.Path) == 0 && (name == "kind" || name == "apiVersion") {
				return f, &UnknownFieldError{Path: path, Known: below(f.Declared, known)}
			}
			f.kind, f.Path, f.Declared = next, append(f.Path, name), join(f.Declared, name)
			rest = after
		case reflect.Map: // its keys may have dots
			f.kind, f.Path = f.kind.Elem(), append(f.Path, rest)
			rest = ""
		default:
			return f, &UnknownFieldError{Path: path, Known: []string{f.Declared}}
		}
	}
	if len(f.Path) == 0 {
		return f, &UnknownFieldError{Path: path, Known: below("", fieldsOf(document))}
	}
	return f, nil
}

// Kubelet returns the type into which kubelet decodes its configuration.
func Kubelet() reflect.Type { return reflect.TypeFor[kubeletv1beta1.KubeletConfiguration]() }

func below(parent string, known map[string]reflect.Type) (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if name != "kind" && name != "apiVersion" {
			paths = append(paths, join(parent, name))
		}
	}
	return paths
}

// IsText reports whether the field's value is a text, or written as one, as a duration is.
func (f Field) IsText() bool { return decodes(f.kind, "1s") }

// Parse returns the value that a text means for the field: the text itself, or what it means as YAML. The error is a
// *ValueError.
func (f Field) Parse(text string) (any, error) {
	path := strings.Join(f.Path, ".")
	if f.IsText() {
		if !decodes(f.kind, text) {
			return nil, &ValueError{path, "the value is no duration", "write " + wanted(f.base())}
		}
		return text, nil
	}
	var value any
	if err := yamlv3.Unmarshal([]byte(text), &value); err != nil {
		return nil, &ValueError{path, "the value is not YAML", "write " + wanted(f.base())}
	}
	value = plain(value)
	if value == nil {
		return nil, &ValueError{path, "there is no value", "write " + wanted(f.base()) + ", or unset the field"}
	}
	if !decodes(f.kind, value) {
		return nil, &ValueError{path, "the value is " + describe(value), "write " + wanted(f.base())}
	}
	return value, nil
}

func (f Field) base() reflect.Type {
	t := f.kind
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// plain returns a decoded value with texts as the keys of all mappings.
func plain(value any) any {
	switch v := value.(type) {
	case map[any]any:
		all := map[string]any{}
		for key, inner := range v {
			all[fmt.Sprint(key)] = plain(inner)
		}
		return all
	case map[string]any:
		for key, inner := range v {
			v[key] = plain(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plain(inner)
		}
	}
	return value
}
