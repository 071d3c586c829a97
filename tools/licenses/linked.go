package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// program is a command as the Makefile builds it.
type program struct {
	folder  string
	targets []string // SYSTEM/PROCESSOR
	tags    string
}

var programs = []program{
	{folder: "./cmd/swdt", targets: []string{
		"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
	}},
	{folder: "./cmd/swdt-agent", targets: []string{"windows/amd64"}, tags: "grpcnotrace"},
	{folder: "./cmd/swdt-controller", targets: []string{"linux/amd64"}},
	{folder: "./cmd/swdt-node", targets: []string{"windows/amd64"}},
	{folder: "./cmd/swdt-probe", targets: []string{"linux/amd64", "linux/arm64", "windows/amd64"}},
}

// standardLibrary is the name under which the notices list Go's own packages.
const standardLibrary = "Go standard library"

// module is a module of which at least one package is linked, or the standard library.
type module struct {
	name    string // path and version, or standardLibrary
	root    string
	folders map[string]bool // those of the linked packages
	texts   []*text
}

// licenses returns the texts that state a licence.
func (m *module) licenses() []*text {
	return slices.DeleteFunc(slices.Clone(m.texts), func(t *text) bool { return !t.license })
}

// text is a file that must travel with a program.
type text struct {
	path    string // below the module's folder, with slashes
	content []byte
	license bool     // false: a NOTICE, or a grant of patents
	names   []string // SPDX identifiers
}

// linked returns the modules of all programs, sorted by name, with their texts.
func linked(programs []program) ([]*module, error) {
	lists, err := listAll(programs)
	if err != nil {
		return nil, err
	}
	modules := map[string]*module{}
	for _, list := range lists {
		for _, p := range list {
			m := p.owner()
			if m == nil {
				continue
			}
			if modules[m.name] == nil {
				modules[m.name] = m
			}
			// The one licence below the standard library's own is that of BoringCrypto, whose
			// objects are not linked without cgo.
			if m.name != standardLibrary {
				modules[m.name].folders[p.Dir] = true
			}
		}
	}
	var all []*module
	for _, m := range modules {
		if m.texts, err = textsOf(m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *module) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// listed is a package as `go list -json` prints it.
type listed struct {
	Dir      string
	Root     string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version string }
	}
}

// owner returns the module of a package; nil: swdt's own.
func (p listed) owner() *module {
	m := &module{folders: map[string]bool{}}
	switch {
	case p.Standard:
		m.name, m.root = standardLibrary, p.Root
	case p.Module == nil || p.Module.Main:
		return nil
	case p.Module.Replace != nil:
		m.name, m.root = p.Module.Replace.Path+" "+p.Module.Replace.Version, p.Module.Dir
	default:
		m.name, m.root = p.Module.Path+" "+p.Module.Version, p.Module.Dir
	}
	return m
}

// listAll lists the packages of each program for each of its targets.
func listAll(programs []program) ([][]listed, error) {
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	var lists []*[]listed
	for _, p := range programs {
		for _, target := range p.targets {
			list := new([]listed)
			lists = append(lists, list)
			group.Go(func() (err error) {
				*list, err = listTarget(p, target)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all [][]listed
	for _, list := range lists {
		all = append(all, *list)
	}
	return all, nil
}

func listTarget(p program, target string) ([]listed, error) {
	system, processor, _ := strings.Cut(target, "/")
	list := exec.Command("go", "list", "-deps", "-tags", p.tags, "-json=Dir,Root,Standard,Module", p.folder)
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	output, err := list.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("list the packages of %s for %s: %w", p.folder, target, err)
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var next listed
		switch err := decoder.Decode(&next); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, next)
	}
}

var (
	licenseName = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying)([.-].*)?$`)
	// docsLicense is the licence of a module's documentation, which is not linked.
	docsLicense = regexp.MustCompile(`(?i)^licen[sc]e\.docs$`)
	noticeName  = regexp.MustCompile(`(?i)^(notice|patents|copyright)([.-].*)?$`)
)

// textsOf reads the texts in the folders of the linked packages and in all folders above them,
// up to the module's own: a module can contain code under a second licence.
func textsOf(m *module) ([]*text, error) {
	folders := map[string]bool{m.root: true}
	for folder := range m.folders {
		for ; folder != m.root && strings.HasPrefix(folder, m.root); folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	var all []*text
	for folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			license := licenseName.MatchString(entry.Name())
			if !entry.Type().IsRegular() || filepath.Ext(entry.Name()) == ".go" ||
				docsLicense.MatchString(entry.Name()) || !license && !noticeName.MatchString(entry.Name()) {
				continue
			}
			path := filepath.Join(folder, entry.Name())
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(m.root, path)
			if err != nil {
				return nil, err
			}
			all = append(all, &text{path: filepath.ToSlash(name), content: content, license: license})
		}
	}
	slices.SortFunc(all, func(a, b *text) int { return strings.Compare(a.path, b.path) })
	return all, nil
}
