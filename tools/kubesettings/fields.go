package main

import (
	"fmt"
	"go/ast"
	"reflect"
	"strings"
)

// configuration is a kind of a program's configuration file.
type configuration struct{ kind, folder string }

func configurations() []configuration {
	return []configuration{
		{"KubeletConfiguration", kubeletModule + "/config/v1beta1"},
		{"KubeProxyConfiguration", proxyModule + "/config/v1alpha1"},
	}
}

// fields returns the paths of all fields of a configuration, such as authentication.x509.clientCAFile. The elements of a
// list are name[], and the keys of a map are not listed.
func fields(s *source, c configuration) ([]string, error) {
	w := walk{structs: map[string]*ast.StructType{}, paths: map[string]bool{}}
	for _, folder := range []string{baseModule + "/config/v1alpha1", baseModule + "/logs/api/v1", baseModule + "/tracing/api/v1", c.folder} {
		files, err := s.parseFolder(folder)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			w.collect(f)
		}
	}
	root, ok := w.structs[c.kind]
	if !ok {
		return nil, fmt.Errorf("%s has no type %s", c.folder, c.kind)
	}
	w.fields(root, "", 0)
	return sortedKeys(w.paths), nil
}

type walk struct {
	structs map[string]*ast.StructType
	paths   map[string]bool
}

func (w *walk) collect(f *ast.File) {
	for _, d := range f.Decls {
		general, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range general.Specs {
			if spec, ok := s.(*ast.TypeSpec); ok {
				if structure, ok := spec.Type.(*ast.StructType); ok {
					w.structs[spec.Name.Name] = structure
				}
			}
		}
	}
}

// deepest bounds the nesting of types.
const deepest = 8

func (w *walk) fields(structure *ast.StructType, parent string, depth int) {
	if depth > deepest {
		return
	}
	for _, field := range structure.Fields.List {
		name := ""
		if field.Tag != nil {
			tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
			name, _, _ = strings.Cut(tag.Get("json"), ",")
		}
		if name == "-" {
			continue
		}
		at := parent
		if name != "" {
			at = strings.TrimPrefix(parent+"."+name, ".")
			w.paths[at] = true
		}
		w.typed(field.Type, at, depth)
	}
}

// typed adds the fields of a field's own type.
func (w *walk) typed(t ast.Expr, at string, depth int) {
	switch t := t.(type) {
	case *ast.StarExpr:
		w.typed(t.X, at, depth)
	case *ast.ArrayType:
		w.typed(t.Elt, at+"[]", depth)
	case *ast.Ident, *ast.SelectorExpr:
		if structure, ok := w.structs[identifier(t)]; ok {
			w.fields(structure, at, depth+1)
		}
	}
}
