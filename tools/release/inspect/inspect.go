// Package inspect looks into the files of a release, and reports everything that does not fit together:
//
//	archives.go   each archive has the files of its system, and no others
//	notices.go    the licence and the notices have a text for each module that is linked
//	sbom.go       the list of modules has each program of an archive, with the modules that Go recorded in it
//	manifests.go  the manifests of package managers name the archives by their hashes
//
// It reads what users get, not what the release was made from, so it also finds defects of the packages that
// write the files.
package inspect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Folder inspects a release. All problems are in the error.
func Folder(folder string) error {
	r := &release{folder: folder}
	lists, err := filepath.Glob(filepath.Join(folder, "swdt_*.spdx.json"))
	if err != nil {
		return err
	}
	if len(lists) != 1 {
		return fmt.Errorf("there are %d lists of modules, swdt_VERSION.spdx.json, not one", len(lists))
	}
	r.version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(lists[0]), "swdt_"), ".spdx.json")
	archives, err := r.archives()
	return errors.Join(err, r.contents(archives), r.licences(archives), r.modules(archives), r.manifests())
}

// release is a release that is inspected.
type release struct {
	folder, version string
}

func (r *release) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.folder, filepath.FromSlash(name)))
}
