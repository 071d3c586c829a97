// Package checksum writes and verifies the list of all files of a release, in the format of sha256sum.
package checksum

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/tools/release/signature"
)

// File is the name of the list. Its signature is beside it and is not listed.
const File = "SHA256SUMS"

// Of returns the SHA-256 of a file, in hexadecimal digits.
func Of(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Entry is a file of a release.
type Entry struct {
	Name   string // relative to the release's folder, with slashes
	SHA256 string
}

// Folder returns an entry for each file below a folder, sorted by name, without the list and its
// signature.
func Folder(folder string) ([]Entry, error) {
	var all []Entry
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); name == File || name == File+signature.Extension {
			return nil
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a file", path)
		}
		sum, err := Of(path)
		all = append(all, Entry{name, sum})
		return err
	})
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Format returns the list.
func Format(entries []Entry) []byte {
	var b bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&b, "%s  %s\n", e.SHA256, e.Name)
	}
	return b.Bytes()
}

// Verify compares a folder with its list. Every difference is an error: a file that has changed, one
// that is missing, and one that the list does not have.
func Verify(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, File))
	if err != nil {
		return err
	}
	found, err := Folder(folder)
	if err != nil {
		return err
	}
	have := map[string]string{}
	for _, e := range found {
		have[e.Name] = e.SHA256
	}
	var problems []error
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		switch actual, exists := have[name]; {
		case !exists:
			problems = append(problems, fmt.Errorf("%s is missing", name))
		case actual != sum:
			problems = append(problems, fmt.Errorf("%s has the SHA-256 %s; %s has %s", name, actual, File, sum))
		}
		delete(have, name)
	}
	for _, e := range found {
		if _, unlisted := have[e.Name]; unlisted {
			problems = append(problems, fmt.Errorf("%s is not in %s", e.Name, File))
		}
	}
	return errors.Join(problems...)
}
