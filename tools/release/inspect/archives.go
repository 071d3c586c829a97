package inspect

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"github.com/swdt-dev/swdt/tools/release/payload"
)

// unpacked is an archive of the release.
type unpacked struct {
	name   string
	target payload.Target
	files  map[string][]byte
}

// archives unpacks the archive of each target.
func (r *release) archives() ([]unpacked, error) {
	var all []unpacked
	var problems []error
	for _, target := range payload.Targets() {
		name, unpack := fmt.Sprintf("swdt_%s_%s.tar.gz", r.version, target), untar
		if target.OS == "windows" {
			name, unpack = fmt.Sprintf("swdt_%s_%s.zip", r.version, target), unzip
		}
		content, err := r.read(name)
		if err == nil {
			files := map[string][]byte{}
			if err = unpack(content, files); err == nil {
				all = append(all, unpacked{name, target, files})
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("open %s: %w", name, err))
		}
	}
	return all, errors.Join(problems...)
}

func untar(content []byte, into map[string][]byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := add(into, header.Name, header.Typeflag == tar.TypeReg, reader); err != nil {
			return err
		}
	}
}

func unzip(content []byte, into map[string][]byte) error {
	reader, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return err
	}
	for _, file := range reader.File {
		opened, err := file.Open()
		if err != nil {
			return err
		}
		if err := add(into, file.Name, file.Mode().IsRegular(), opened); err != nil {
			return err
		}
	}
	return nil
}

func add(into map[string][]byte, name string, regular bool, content io.Reader) error {
	if _, twice := into[name]; twice || !regular {
		return fmt.Errorf("%s is in it twice, or is no ordinary file", name)
	}
	text, err := io.ReadAll(content)
	into[name] = text
	return err
}

// manual matches the names of manual pages, which follow the commands of swdt.
var manual = regexp.MustCompile(`^man/swdt(-[a-z0-9-]+)?\.1$`)

// contents compares the names in the archives with those that each must have. All archives with manual pages
// must have the same ones.
func (r *release) contents(archives []unpacked) error {
	manuals := map[string]bool{"man/swdt.1": true}
	for _, a := range archives {
		for name := range a.files {
			if manual.MatchString(name) {
				manuals[name] = true
			}
		}
	}
	var problems []error
	for _, a := range archives {
		want := map[string]bool{a.target.Program(): true, "LICENSE": true, "THIRD_PARTY_NOTICES": true,
			"completions/swdt.bash": true, "completions/_swdt": true, "completions/swdt.fish": true,
			"completions/swdt.ps1": true}
		if a.target.OS != "windows" {
			maps.Copy(want, manuals)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if len(a.files[name]) == 0 {
				problems = append(problems, fmt.Errorf("%s lacks %s, or it is empty", a.name, name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(a.files)) {
			if !want[name] {
				problems = append(problems, fmt.Errorf("%s has a file that no archive of its system has: %s", a.name, name))
			}
		}
	}
	return errors.Join(problems...)
}
