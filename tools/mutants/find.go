package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// class is the end of a mutant.
type class string

const (
	killed     class = "killed"
	survived   class = "survived"
	notReached class = "not reached"
	timeout    class = "timeout"
)

// mutant is one change of the source.
type mutant struct {
	File     string // from the root of the repository, with slashes
	Line     int
	Function string // TYPE.NAME for methods, wholeFile outside of functions
	Change   string
	Class    class

	id         int    // the number of its switch
	edits      []edit // of the text of the file
	impossible string // why it cannot be tested; "" if it can
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s", m.File, m.Line, m.Function, m.Change)
}

// name returns the text that the patterns of exclude.txt match. It lacks the line, which changes with other code.
func (m *mutant) name() string { return m.File + " " + m.Function + ": " + m.Change }

// wholeFile is the name of the function of code outside of functions.
const wholeFile = "package"

// source is a package without its tests.
type source struct {
	folder  string
	name    string
	files   []file
	info    *types.Info
	fileSet *token.FileSet
}

type file struct {
	name      string // from the root of the repository, with slashes
	path      string // absolute
	text      []byte
	tree      *ast.File
	generated bool
}

// load parses and checks the types of the package in a folder.
func load(ctx context.Context, folder string) (*source, error) {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
		Env: environment(), BuildFlags: []string{"-trimpath"},
	}, "./"+folder)
	if err != nil {
		return nil, err
	}
	p := loaded[0]
	var errs []error
	for _, e := range p.Errors {
		errs = append(errs, e)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s := &source{folder: folder, name: p.Name, info: p.TypesInfo, fileSet: p.Fset}
	for i, path := range p.CompiledGoFiles {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, file{name: filepath.ToSlash(filepath.Join(folder, filepath.Base(path))), path: path,
			text: text, tree: p.Syntax[i], generated: ast.IsGenerated(p.Syntax[i])})
	}
	return s, nil
}

func (s *source) file(name string) *file {
	for i := range s.files {
		if s.files[i].name == name {
			return &s.files[i]
		}
	}
	return nil
}

func (s *source) offset(at token.Pos) int { return s.fileSet.Position(at).Offset }

// find returns all mutants of the package, in the order of the source.
func (s *source) find() (all []*mutant) {
	for i := range s.files {
		f := &finder{source: s, file: &s.files[i]}
		for _, d := range f.file.tree.Decls {
			f.function = functionName(d)
			ast.PreorderStack(d, nil, f.visit)
		}
		all = append(all, f.found...)
	}
	return all
}

func functionName(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return wholeFile
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	return types.ExprString(receiver) + "." + f.Name.Name
}

// finder finds the mutants of one file.
type finder struct {
	*source
	file     *file
	function string
	found    []*mutant
}

// add adds a mutant of a node. The edits contain %d at the place of the mutant's number.
func (f *finder) add(n ast.Node, change string, edits ...edit) {
	m := &mutant{File: f.file.name, Line: f.fileSet.Position(n.Pos()).Line, Function: f.function, Change: change,
		edits: edits}
	if f.file.generated {
		m.impossible = "generated code"
	}
	f.found = append(f.found, m)
}

// cannot counts a mutant that cannot be switched.
func (f *finder) cannot(n ast.Node, reason string) {
	f.add(n, f.short(n))
	f.found[len(f.found)-1].impossible = reason
}

// wrap returns the edit that puts text before and after a node.
func (f *finder) wrap(n ast.Node, before, after string) edit {
	return edit{from: f.offset(n.Pos()), to: f.offset(n.End()), before: before, after: after}
}

func (f *finder) text(n ast.Node) string {
	return string(f.file.text[f.offset(n.Pos()):f.offset(n.End())])
}

// short returns the text of a node for a report, in one line.
func (f *finder) short(n ast.Node) string {
	const most = 100
	text := strings.Join(strings.Fields(f.text(n)), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
