package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// gate is the state of a feature gate in one minor version.
type gate struct {
	stage  string // alpha, beta, ga or deprecated
	on     bool   // the default
	locked bool   // no other value than the default is allowed
}

// String returns the form of the table, such as "ga on locked".
func (g gate) String() string {
	text := g.stage + " off"
	if g.on {
		text = g.stage + " on"
	}
	if g.locked {
		text += " locked"
	}
	return text
}

// gateFolders returns the packages whose gates kubelet and kube-proxy register in the same set.
func gateFolders() []string {
	return []string{
		kubernetesModule + "/pkg/features", serverModule + "/pkg/features", clientModule + "/features",
		baseModule + "/featuregate", baseModule + "/logs/api/v1", baseModule + "/metrics/features", baseModule + "/zpages/features",
	}
}

// gates returns the gates that the programs of a minor version know.
func gates(s *source, minor int) (map[string]gate, error) {
	var files []*ast.File
	for _, folder := range gateFolders() {
		found, err := s.parseFolder(folder)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	names := constants(files)
	all := map[string]gate{}
	var problem error
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok || !isMapOf(literal.Type, "VersionedSpecs") && !isMapOf(literal.Type, "FeatureSpec") {
				return true
			}
			for _, element := range literal.Elts {
				pair, ok := element.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				name := identifier(pair.Key)
				if value, ok := names[name]; ok {
					name = value
				}
				state, known, err := stateAt(pair.Value, minor)
				if err != nil {
					problem = errors.Join(problem, fmt.Errorf("gate %s: %w", name, err))
				}
				if known {
					all[name] = state
				}
			}
			return false
		})
	}
	if len(all) == 0 {
		problem = errors.Join(problem, errors.New("no feature gate was found"))
	}
	return all, problem
}

// dependencies returns the gates that a gate needs: a program refuses the gate if one of them is off.
func dependencies(s *source) (map[string][]string, error) {
	files, err := s.parseFolder(kubernetesModule + "/pkg/features")
	if err != nil {
		return nil, err
	}
	names, all := constants(files), map[string][]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != "defaultKubernetesFeatureGateDependencies" || len(spec.Values) == 0 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.CompositeLit)
			if !ok {
				return true
			}
			for _, element := range literal.Elts {
				pair, isPair := element.(*ast.KeyValueExpr)
				if !isPair {
					continue
				}
				list, isList := pair.Value.(*ast.CompositeLit)
				if !isList || len(list.Elts) == 0 {
					continue
				}
				name := named(names, pair.Key)
				for _, needed := range list.Elts {
					all[name] = append(all[name], named(names, needed))
				}
			}
			return false
		})
	}
	return all, nil
}

func named(names map[string]string, e ast.Expr) string {
	if value, ok := names[identifier(e)]; ok {
		return value
	}
	return identifier(e)
}

// stateAt returns the last state that began no later than the minor version, as Kubernetes does itself.
func stateAt(specs ast.Expr, minor int) (state gate, known bool, err error) {
	list, ok := specs.(*ast.CompositeLit)
	if !ok {
		return gate{}, false, errors.New("its value is no list")
	}
	for _, element := range list.Elts {
		spec, ok := element.(*ast.CompositeLit)
		if !ok { // the gates of client-go have no versions up to 1.34: {Default: true, PreRelease: Beta}
			_, state, err = specOf(list)
			return state, err == nil, err
		}
		since, one, err := specOf(spec)
		if err != nil {
			return gate{}, false, err
		}
		if since <= minor {
			state, known = one, true
		}
	}
	return state, known, nil
}

// specOf reads one literal, such as {Version: version.MustParse("1.34"), Default: true, PreRelease: featuregate.GA}.
func specOf(spec *ast.CompositeLit) (since int, g gate, err error) {
	g.stage = "ga" // the empty string of featuregate.GA
	for _, element := range spec.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return 0, gate{}, errors.New("a state has values without names")
		}
		switch identifier(pair.Key) {
		case "Version":
			if since, err = minorOf(pair.Value); err != nil {
				return 0, gate{}, err
			}
		case "Default":
			g.on = identifier(pair.Value) == "true"
		case "LockToDefault":
			g.locked = identifier(pair.Value) == "true"
		case "PreRelease":
			g.stage = strings.ToLower(identifier(pair.Value))
		}
	}
	return since, g, nil
}

// minorOf returns x of version.MustParse("1.x"); 0 for version.MajorMinor(0, 0), which means all versions.
func minorOf(e ast.Expr) (int, error) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return 0, errors.New("a version is no call")
	}
	if identifier(call.Fun) == "MajorMinor" {
		return 0, nil
	}
	text, _ := literalText(call.Args[0])
	minor, err := strconv.Atoi(strings.TrimPrefix(text, "1."))
	if err != nil {
		return 0, fmt.Errorf("%q is no version 1.x", text)
	}
	return minor, nil
}

// constants returns the string constants of files by their names.
func constants(files []*ast.File) map[string]string {
	all := map[string]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			general, ok := d.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, s := range general.Specs {
				value, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for i, name := range value.Names {
					if i < len(value.Values) {
						if text, ok := literalText(value.Values[i]); ok {
							all[name.Name] = text
						}
					}
				}
			}
		}
	}
	return all
}

// isMapOf reports whether a type is a map whose values are of a type of this name.
func isMapOf(t ast.Expr, name string) bool {
	m, ok := t.(*ast.MapType)
	return ok && identifier(m.Value) == name
}

// identifier returns the name in X or package.X; "" for other expressions.
func identifier(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literalText returns the text of a string literal.
func literalText(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}
