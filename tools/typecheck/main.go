// Command typecheck checks the types of all packages of a module, with their tests, for other systems than this one:
//
//	typecheck [-dir FOLDER] [-tags TAGS] SYSTEM…
//
// It reads the sources of everything that they import, and generates no code, so it takes a tenth of the time of
// `go vet` for a system that nothing else is built for. In packages of other modules it skips the bodies of functions.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	folder := flag.String("dir", ".", "the `folder` of the module")
	tags := flag.String("tags", "", "build tags")
	flag.Parse()
	if err := run(os.Stdout, *folder, *tags, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, folder, tags string, systems []string) error {
	if len(systems) == 0 {
		return errors.New("usage: typecheck [-dir FOLDER] [-tags TAGS] SYSTEM…")
	}
	root, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	failed := 0
	for _, system := range systems {
		problems, err := check(root, tags, system)
		if err != nil {
			return fmt.Errorf("load the packages for %s: %w", system, err)
		}
		for _, problem := range problems {
			fmt.Fprintf(out, "%s: %s\n", system, problem)
		}
		failed += len(problems)
	}
	if failed > 0 {
		return fmt.Errorf("%d problems", failed)
	}
	return nil
}

// check returns the errors of the module's packages when they are built for a system.
func check(root, tags, system string) ([]string, error) {
	const everything = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedModule
	inside := root + string(filepath.Separator)
	loaded, err := packages.Load(&packages.Config{
		Mode: everything, Dir: root, Tests: true, BuildFlags: []string{"-tags=" + tags},
		Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		ParseFile: func(files *token.FileSet, name string, source []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, inside) {
				withoutBodies(file)
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		return nil, err
	}
	var problems []string
	seen := map[string]bool{}
	for _, p := range loaded {
		for _, e := range p.Errors {
			// Others are in generated mains of tests, whose functions have lost their bodies too.
			if text := e.Error(); strings.HasPrefix(e.Pos, inside) && !seen[text] {
				seen[text] = true
				problems = append(problems, strings.TrimPrefix(text, inside))
			}
		}
	}
	if len(loaded) == 0 {
		return nil, errors.New("the module has no packages")
	}
	return problems, nil
}

// withoutBodies replaces the body of each function by one that has any type of result. Packages that the file
// imports for the bodies alone are unused then: an error of a package that is not checked here.
func withoutBodies(file *ast.File) {
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil {
			f.Body = &ast.BlockStmt{Lbrace: f.Body.Lbrace, Rbrace: f.Body.Rbrace, List: []ast.Stmt{
				&ast.ForStmt{For: f.Body.Lbrace, Body: &ast.BlockStmt{Lbrace: f.Body.Lbrace, Rbrace: f.Body.Rbrace}}}}
		}
	}
}
