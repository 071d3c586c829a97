package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// shortest is the shortest limit that a loaded machine does not meet.
	shortest = 30 * time.Second

	sleep, since = "time.Sleep", "time.Since"
)

// limits are the functions with a limit, and the index of the argument that is the limit.
var limits = map[string]int{
	"time.After": 0, "time.NewTimer": 0, "time.AfterFunc": 0, "context.WithTimeout": 1, "context.WithTimeoutCause": 1,
	"context.WithDeadline": 1, "context.WithDeadlineCause": 1,
}

// inFolder returns the places in the tests of all packages below a folder, sorted.
func inFolder(folder string) (places []place, err error) {
	packages := map[string][]string{}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != folder && (name[0] == '.' || name == "testdata"):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, "_test.go"):
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], path)
		}
		return nil
	})
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if err != nil {
			return nil, err
		}
		var found []place
		found, err = inFiles(folder, packages[dir])
		places = append(places, found...)
	}
	return places, err
}

// inFiles returns the places in the test files of a package.
func inFiles(folder string, paths []string) (places []place, err error) {
	tests := &tests{positions: token.NewFileSet()}
	for _, path := range paths {
		file, err := parser.ParseFile(tests.positions, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		tests.files = append(tests.files, file)
	}
	tests.learn()
	for i, file := range tests.files {
		relative, err := filepath.Rel(folder, paths[i])
		if err != nil {
			return nil, err
		}
		for _, p := range tests.inFile(file) {
			p.file = filepath.ToSlash(relative)
			places = append(places, p)
		}
	}
	return places, nil
}

// tests are the test files of a package.
type tests struct {
	positions *token.FileSet
	files     []*ast.File
	constants map[string]ast.Expr // values of constants and variables, by name
	helpers   map[string]bool     // functions that run their arguments in a bubble of synctest
	bubbled   map[string]bool     // functions that run in bubbles only
}

// learn fills the fields of t from its files.
func (t *tests) learn() {
	t.constants, t.helpers, t.bubbled = map[string]ast.Expr{}, map[string]bool{}, map[string]bool{}
	for _, file := range t.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) {
						t.constants[name.Name] = n.Values[i]
					}
				}
			case *ast.FuncDecl:
				if takesFunction(n.Type) && callsBubble(n) {
					t.helpers[n.Name.Name] = true
				}
			case *ast.AssignStmt:
				t.learnClosure(n)
			}
			return true
		})
	}
	for before := -1; before < len(t.bubbled); {
		before = len(t.bubbled)
		t.learnBubbled()
	}
}

// learnClosure adds the name of a function literal that runs its arguments in a bubble.
func (t *tests) learnClosure(n *ast.AssignStmt) {
	name, named := n.Lhs[0].(*ast.Ident)
	literal, ok := n.Rhs[0].(*ast.FuncLit)
	if named && ok && takesFunction(literal.Type) && callsBubble(literal) {
		t.helpers[name.Name] = true
	}
}

// learnBubbled adds the functions that are used in bubbles and in bubbled functions, and nowhere else.
func (t *tests) learnBubbled() {
	inside, outside := map[string]bool{}, map[string]bool{}
	for _, file := range t.files {
		t.walk(file, func(n ast.Node, function string, bubble bool) {
			name, ok := n.(*ast.Ident)
			switch {
			case !ok || name.Name == function:
			case bubble:
				inside[name.Name] = true
			default:
				outside[name.Name] = true
			}
		})
	}
	for _, file := range t.files {
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && inside[f.Name.Name] && !outside[f.Name.Name] {
				t.bubbled[f.Name.Name] = true
			}
		}
	}
}

// walk visits the nodes of a file, with the name of the function that contains each, and whether it runs in a bubble.
// It does not visit the names of the declared functions.
func (t *tests) walk(file *ast.File, visit func(n ast.Node, function string, bubble bool)) {
	var inside func(n ast.Node, function string, bubble bool)
	inside = func(n ast.Node, function string, bubble bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || bubble || !t.startsBubble(call) {
				if n != nil {
					visit(n, function, bubble)
				}
				return true
			}
			inside(call.Fun, function, false)
			for _, argument := range call.Args {
				inside(argument, function, true)
			}
			return false
		})
	}
	for _, declared := range file.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok && f.Body != nil {
			inside(f.Body, f.Name.Name, t.bubbled[f.Name.Name])
		} else if !ok {
			inside(declared, "", false)
		}
	}
}

// startsBubble reports whether a call runs its arguments in a bubble.
func (t *tests) startsBubble(call *ast.CallExpr) bool {
	switch name := nameOf(call.Fun); {
	case name == "synctest.Test":
		return true
	default:
		return t.helpers[name[strings.LastIndex(name, ".")+1:]]
	}
}

func callsBubble(f ast.Node) (calls bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		calls = calls || ok && nameOf(call.Fun) == "synctest.Test"
		return !calls
	})
	return calls
}

func takesFunction(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		_, ok := p.Type.(*ast.FuncType)
		return ok
	})
}

// inFile returns the places of a file, in order.
func (t *tests) inFile(file *ast.File) (places []place) {
	measured := t.measured(file)
	t.walk(file, func(n ast.Node, function string, bubble bool) {
		if call := t.dependsOnClock(n, measured[function]); call != "" && !bubble {
			if function == "" {
				function = "-"
			}
			places = append(places, place{line: t.positions.Position(n.Pos()).Line, function: function, call: call})
		}
	})
	return places
}

// dependsOnClock returns what makes a node depend on the clock; "" if it does not. The names hold durations that
// time.Since returned.
func (t *tests) dependsOnClock(n ast.Node, names map[string]bool) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		name := nameOf(n.Fun)
		if name == sleep {
			return name
		}
		if at, ok := limits[name]; ok && at < len(n.Args) && t.isShort(n.Args[at]) {
			return name
		}
	case *ast.BinaryExpr:
		if isComparison(n.Op) && (measures(n.X, names) || measures(n.Y, names)) {
			return since
		}
	}
	return ""
}

// isShort reports whether a limit is shorter than a loaded machine needs. A limit that only the running test
// knows is short.
func (t *tests) isShort(limit ast.Expr) bool {
	if call, ok := limit.(*ast.CallExpr); ok && strings.HasSuffix(nameOf(call.Fun), ".Add") && len(call.Args) == 1 {
		limit = call.Args[0] // of time.Now().Add(limit)
	}
	value, ok := t.value(limit, 0)
	return !ok || value < float64(shortest)
}

// measured returns, by function, the names of variables with a duration that time.Since returned outside of bubbles.
func (t *tests) measured(file *ast.File) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	t.walk(file, func(n ast.Node, function string, bubble bool) {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || bubble || len(assign.Lhs) != len(assign.Rhs) {
			return
		}
		for i, value := range assign.Rhs {
			name, ok := assign.Lhs[i].(*ast.Ident)
			if !ok || !measures(value, nil) {
				continue
			}
			if all[function] == nil {
				all[function] = map[string]bool{}
			}
			all[function][name.Name] = true
		}
	})
	return all
}

// measures reports whether an expression is the result of time.Since, or one of the names.
func measures(e ast.Expr, names map[string]bool) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return measures(e.X, names)
	case *ast.BinaryExpr:
		return !isComparison(e.Op) && (measures(e.X, names) || measures(e.Y, names))
	case *ast.CallExpr:
		return nameOf(e.Fun) == since
	case *ast.Ident:
		return names[e.Name]
	}
	return false
}

func isComparison(op token.Token) bool {
	return slices.Contains([]token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ, token.EQL, token.NEQ}, op)
}

// nameOf returns the name of a called function, such as time.Sleep or check; "" for other expressions.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if prefix := nameOf(e.X); prefix != "" {
			return prefix + "." + e.Sel.Name
		}
		return "." + e.Sel.Name
	}
	return ""
}
