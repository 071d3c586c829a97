// Package gobuild builds programs that tests run. Go's cache of test results knows the files that a test
// opens, but not those that a compiler reads for it. This package opens the sources of each program too,
// so that a test runs again after they changed.
package gobuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Program is a program to build, for this machine if no other system is named.
type Program struct {
	Package string   // as `go build` takes it
	Folder  string   // where `go build` runs; "": the test's own folder
	Windows bool     // for Windows on amd64
	Flags   []string // more flags of `go build`, such as -tags
	Env     []string // more environment, such as GOWORK=off
}

// Build builds the program into a folder of the test, and returns the path of the executable.
func Build(t testing.TB, p Program) string {
	t.Helper()
	name := filepath.Base(p.Package)
	if name == "." {
		name = "program"
	}
	if p.Windows {
		name += ".exe"
	}
	path := filepath.Join(t.TempDir(), name)
	BuildAs(t, p, path)
	return path
}

// BuildAs builds the program into the file at path.
func BuildAs(t testing.TB, p Program, path string) {
	t.Helper()
	if err := p.Write(t.Context(), path); err != nil {
		t.Fatal(err)
	}
}

// Write builds the program into the file at path. The error has the compiler's output.
func (p Program) Write(ctx context.Context, path string) error {
	if err := p.openSources(ctx); err != nil {
		return err
	}
	if path, err := filepath.Abs(path); err != nil {
		return err
	} else if _, err := p.run(ctx, "build", "-o", path); err != nil {
		return fmt.Errorf("build %s: %w", p.Package, err)
	}
	return nil
}

// sources lists the files of a package that belongs to the module in which `go list` runs.
const sources = `{{if and .Module .Module.Main}}{{$d := .Dir}}` +
	`{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .SFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}` +
	`{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`

// openSources opens each file of the program's module that goes into the program.
func (p Program) openSources(ctx context.Context) error {
	list, err := p.run(ctx, "list", "-deps", "-f", sources)
	if err != nil {
		return fmt.Errorf("list the sources of %s: %w", p.Package, err)
	}
	for _, path := range strings.Fields(list) {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command of go for the program, and returns what it prints on stdout.
func (p Program) run(ctx context.Context, verb string, args ...string) (string, error) {
	flags := p.Flags
	if verb == "list" {
		flags = tags(flags)
	}
	cmd := exec.CommandContext(ctx, "go", append(append(append([]string{verb}, flags...), args...), p.Package)...)
	cmd.Dir = p.Folder
	cmd.Env = append(cmd.Environ(), p.Env...)
	if p.Windows {
		cmd.Env = append(cmd.Env, "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	return string(out), err
}

// tags returns the flag -tags, which alone decides which files belong to a program.
func tags(flags []string) []string {
	for i, flag := range flags {
		if flag == "-tags" && i+1 < len(flags) {
			return flags[i : i+2]
		}
	}
	return nil
}
