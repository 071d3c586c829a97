package config

import (
	"reflect"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// fields are the YAML names of a struct's fields, in order, and the index of each name's field.
type fields struct {
	names []string
	index map[string]int
}

func fieldsOf(t reflect.Type) fields {
	f := fields{index: map[string]int{}}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		f.names = append(f.names, name)
		f.index[name] = i
	}
	return f
}

// knownFields returns the names of all fields of the node file.
func knownFields() map[string]bool {
	names := map[string]bool{}
	for _, document := range []reflect.Type{reflect.TypeFor[v1alpha1.Node](), reflect.TypeFor[v1alpha1.Cluster]()} {
		for name := range fieldHomes(document) {
			names[name] = true
		}
	}
	return names
}

// fieldHomes returns the parents of each field of a document of a type. The keys are the names of the
// fields. The parent of username in a Node, for example, is spec.credentials.
func fieldHomes(document reflect.Type) map[string][]string {
	homes := map[string][]string{}
	var collect func(t reflect.Type, path string)
	collect = func(t reflect.Type, path string) {
		switch {
		case t.Kind() == reflect.Pointer:
			collect(t.Elem(), path)
		case t.Kind() == reflect.Slice:
			collect(t.Elem(), path+"[]")
		case t.Kind() == reflect.Struct && t != reflect.TypeFor[v1alpha1.Duration]() &&
			t != reflect.TypeFor[v1alpha1.Command]():
			for i, name := range fieldsOf(t).names {
				homes[name] = append(homes[name], path)
				collect(t.Field(i).Type, join(path, name))
			}
		}
	}
	collect(document, "")
	return homes
}
