package architecture

import (
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const module = "github.com/swdt-dev/swdt/"

// Imports returns, for each package of the module, the packages of the module that it imports when
// built for linux or for windows, without the imports of tests. All paths are within the module,
// whose folder is root.
//
// Imports reads the files itself. If it asked `go list`, Go's cache of test results would not know
// that a test depends on these files, and would repeat a result from before a change.
func Imports(root string) (map[string]map[string]bool, error) {
	all := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(folder string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		path, err := filepath.Rel(root, folder)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(path)
		if path != "." && isOutside(folder, entry.Name()) {
			return fs.SkipDir
		}
		return addImports(folder, path, all)
	})
	if err != nil {
		return nil, fmt.Errorf("read the imports of the packages in %s: %w", root, err)
	}
	return all, nil
}

// isOutside reports whether a folder and all below it hold no package of the module: Go ignores folders
// with such names, and a folder with a go.mod is another module.
func isOutside(folder, name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" {
		return true
	}
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// addImports adds the package in a folder, if there is one, and what it imports.
func addImports(folder, path string, all map[string]map[string]bool) error {
	for _, system := range []string{"linux", "windows"} {
		target := build.Default
		target.GOOS, target.CgoEnabled, target.BuildTags = system, false, nil
		p, err := target.ImportDir(folder, 0)
		var none *build.NoGoError
		if errors.As(err, &none) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the package %s for %s: %w", path, system, err)
		}
		if all[path] == nil {
			all[path] = map[string]bool{}
		}
		for _, imported := range p.Imports {
			if own, ok := strings.CutPrefix(imported, module); ok {
				all[path][own] = true
			}
		}
	}
	return nil
}

// Arrows returns, for each room, the other rooms whose packages the room's packages import.
func Arrows(imports map[string]map[string]bool) map[string]map[string]bool {
	rooms := map[string]map[string]bool{}
	for from, all := range imports {
		a := RoomOf(from)
		if rooms[a] == nil {
			rooms[a] = map[string]bool{}
		}
		for imported := range all {
			if b := RoomOf(imported); b != a {
				rooms[a][b] = true
			}
		}
	}
	return rooms
}
