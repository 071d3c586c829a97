// Package payload collects the files that a user gets, the same in every format of package.
package payload

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Target is a system and a processor for which swdt is published.
type Target struct {
	OS, Arch string
}

func (t Target) String() string { return t.OS + "_" + t.Arch }

// Targets returns all targets, in the order of the archives. On Windows for ARM, only swdt itself is
// built for the processor; the agent inside is for amd64, as the nodes of Kubernetes are.
func Targets() []Target {
	return []Target{
		{"linux", "amd64"}, {"linux", "arm64"},
		{"darwin", "amd64"}, {"darwin", "arm64"},
		{"windows", "amd64"}, {"windows", "arm64"},
	}
}

// Program returns the name of swdt's file on the target.
func (t Target) Program() string {
	if t.OS == "windows" {
		return "swdt.exe"
	}
	return "swdt"
}

// File is a file or an empty folder of a package.
type File struct {
	Name    string // relative, with slashes
	Mode    fs.FileMode
	Content []byte
}

// Modes of files do not depend on the umask of the machine that makes a release.
const (
	ModeProgram fs.FileMode = 0o755
	ModeText    fs.FileMode = 0o644
	ModeShared  fs.FileMode = fs.ModeDir | fs.ModeSticky | 0o777 // a folder like /tmp
)

// Source holds the folders from which packages are made.
type Source struct {
	Repository string // has LICENSE, THIRD_PARTY_NOTICES and CHANGELOG.md
	// Bin is the folder into which `make release` builds: programs/swdt-OS-ARCH, share/completions, share/man, and
	// swdt-agent.exe and probes/ as they are inside swdt.
	Bin string
}

// Path returns where the program of a target is.
func (s Source) Path(t Target) string {
	name := "swdt-" + t.OS + "-" + t.Arch
	if t.OS == "windows" {
		name += ".exe"
	}
	return filepath.Join(s.Bin, "programs", name)
}

// Inside returns the paths of the programs that each swdt carries.
func (s Source) Inside() ([]string, error) {
	probes, err := filepath.Glob(filepath.Join(s.Bin, "probes", "*"))
	if err == nil && len(probes) == 0 {
		err = fmt.Errorf("%s has no probes: run `make build`", filepath.Join(s.Bin, "probes"))
	}
	return append([]string{filepath.Join(s.Bin, "swdt-agent.exe")}, probes...), err
}

// Program returns swdt for a target.
func (s Source) Program(t Target) (File, error) {
	content, err := os.ReadFile(s.Path(t))
	return File{Name: t.Program(), Mode: ModeProgram, Content: content}, err
}

// Licences returns the licence of swdt, and those of what is linked into it.
func (s Source) Licences() ([]File, error) {
	var all []File
	for _, name := range []string{"LICENSE", "THIRD_PARTY_NOTICES"} {
		content, err := os.ReadFile(filepath.Join(s.Repository, name))
		if err != nil {
			return nil, err
		}
		all = append(all, File{Name: name, Mode: ModeText, Content: content})
	}
	return all, nil
}

// Completions returns the scripts that complete commands: completions/SHELL's usual name.
func (s Source) Completions() ([]File, error) { return s.shared("completions") }

// Manuals returns the manual pages: man/swdt-COMMAND.1.
func (s Source) Manuals() ([]File, error) { return s.shared("man") }

func (s Source) shared(folder string) ([]File, error) {
	entries, err := os.ReadDir(filepath.Join(s.Bin, "share", folder))
	if err != nil {
		return nil, err
	}
	var all []File
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(s.Bin, "share", folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, File{Name: folder + "/" + entry.Name(), Mode: ModeText, Content: content})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no files: run `make release`, which makes them",
			filepath.Join(s.Bin, "share", folder))
	}
	return all, nil
}

// Archive returns the files of a target's archive, sorted by name. That of Windows has no manual pages.
func (s Source) Archive(t Target) ([]File, error) {
	program, err := s.Program(t)
	if err != nil {
		return nil, err
	}
	all := []File{program}
	parts := []func() ([]File, error){s.Licences, s.Completions}
	if t.OS != "windows" {
		parts = append(parts, s.Manuals)
	}
	for _, part := range parts {
		files, err := part()
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
