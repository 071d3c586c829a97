package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// object is a JSON object. encoding/json sorts its keys, so the output is stable.
type object = map[string]any

func generate(folder string) ([]byte, error) {
	g := generator{rules: rules(), used: map[string]bool{}}
	maps.Copy(g.rules, clusterRules())
	var err error
	if g.comments, err = comments(folder); err != nil {
		return nil, err
	}
	node := g.structure(reflect.TypeFor[v1alpha1.Node]())
	cluster := g.structure(reflect.TypeFor[v1alpha1.Cluster]())
	schema := object{
		"$schema":     "http://json-schema.org/draft-07/schema#", // the version that editors support best
		"$id":         "https://raw.githubusercontent.com/swdt-dev/swdt/main/api/v1alpha1/schema.json",
		"title":       "swdt node file",
		"description": "A document of a node file: a node or a cluster.",
		"definitions": object{v1alpha1.Kind: node, v1alpha1.ClusterKind: cluster},
		// An editor completes the kind from here, and all other fields from the definition of the kind.
		// Until a document has a kind, that is the definition of a node.
		"properties": object{"kind": object{"enum": []any{v1alpha1.Kind, v1alpha1.ClusterKind}}},
		"if": object{
			"required":   []string{"kind"},
			"properties": object{"kind": object{"const": v1alpha1.ClusterKind}},
		},
		"then": object{"$ref": "#/definitions/" + v1alpha1.ClusterKind},
		"else": object{"$ref": "#/definitions/" + v1alpha1.Kind},
	}
	for name := range g.rules {
		if !g.used[name] {
			return nil, fmt.Errorf("there is a rule for %s, which does not exist", name)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(schema)
	return out.Bytes(), err
}

type generator struct {
	comments map[string]string // the keys are Type and Type.Field, with Go names
	rules    map[string]object // the keys are Type and Type.field, with YAML names of fields
	used     map[string]bool
}

func (g generator) structure(t reflect.Type) object {
	properties := object{}
	var required []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		optional := strings.Contains(options, "omitempty")
		if !optional {
			required = append(required, name)
		}
		properties[name] = g.field(t, field, name, optional)
	}
	schema := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return g.apply(t.Name(), schema)
}

func (g generator) field(owner reflect.Type, field reflect.StructField, name string, optional bool) object {
	schema := g.apply(owner.Name()+"."+name, g.value(field.Type))
	if optional {
		allowNull(schema)
	}
	description := g.comments[owner.Name()+"."+field.Name]
	if description == "" {
		description = g.comments[named(field.Type).Name()]
	}
	if description != "" {
		schema["description"] = description
	}
	return schema
}

func (g generator) value(t reflect.Type) object {
	if t == reflect.TypeFor[v1alpha1.Duration]() {
		return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`}
	}
	if t == reflect.TypeFor[v1alpha1.Command]() {
		text := g.value(reflect.TypeFor[string]())
		text["pattern"] = `\S`
		return object{"anyOf": []any{text, object{"type": "array", "minItems": 1,
			"items": g.value(reflect.TypeFor[string]())}}}
	}
	if t == reflect.TypeFor[v1alpha1.Quantity]() {
		return object{"type": []string{"string", "integer"}, "pattern": `^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$`}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.value(t.Elem())
	case reflect.Struct:
		return g.structure(t)
	case reflect.Slice:
		return object{"type": "array", "items": g.value(t.Elem())}
	case reflect.Map:
		values := g.value(t.Elem())
		allowNull(values)
		return object{"type": "object", "additionalProperties": values}
	case reflect.Interface:
		return object{}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Uint32:
		return object{"type": "integer", "minimum": 0, "maximum": math.MaxUint32}
	case reflect.String:
		// A value such as version: 1.29 is read as text, exactly as it is written.
		return object{"type": []string{"string", "number", "boolean"}}
	}
	panic("schemagen: no schema for " + t.String())
}

// apply adds the rules of a type or field to its schema. The rules override the parts that are
// derived from the Go type.
func (g generator) apply(name string, schema object) object {
	for key, value := range g.rules[name] {
		if key == "items" { // extend the items, do not replace them
			for k, v := range value.(object) {
				schema["items"].(object)[k] = v
			}
			continue
		}
		schema[key] = value
	}
	g.used[name] = true
	return schema
}

// allowNull allows a field to be present and empty (privateKey:), which means unset.
func allowNull(schema object) {
	switch t := schema["type"].(type) {
	case string:
		schema["type"] = []string{t, "null"}
	case []string:
		schema["type"] = append(append([]string{}, t...), "null")
	}
	if choices, ok := schema["enum"].([]any); ok {
		schema["enum"] = append(append([]any{}, choices...), nil)
	}
}

func named(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// comments returns the doc comments of the types and fields in a folder. The keys are Type and
// Type.Field.
func comments(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			if general, ok := declaration.(*ast.GenDecl); ok {
				for _, spec := range general.Specs {
					collect(found, general, spec)
				}
			}
		}
	}
	return found, nil
}

func collect(found map[string]string, declaration *ast.GenDecl, spec ast.Spec) {
	typeSpec, ok := spec.(*ast.TypeSpec)
	if !ok {
		return
	}
	found[typeSpec.Name.Name] = oneLine(declaration.Doc)
	structType, ok := typeSpec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structType.Fields.List {
		for _, name := range field.Names {
			found[typeSpec.Name.Name+"."+name.Name] = oneLine(field.Doc)
		}
	}
}

func oneLine(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}
