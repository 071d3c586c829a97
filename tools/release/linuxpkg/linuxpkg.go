// Package linuxpkg makes the packages for Debian (.deb) and for Red Hat and SUSE (.rpm).
package linuxpkg

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"

	"github.com/swdt-dev/swdt/tools/release/archive"
	"github.com/swdt-dev/swdt/tools/release/payload"
)

// Package says what a package is of.
type Package struct {
	Version string // semantic, without v
	Arch    string // as Go names it
	Time    time.Time
	Source  payload.Source
}

// format has the differences between the formats.
type format struct {
	packager nfpm.Packager
	licences string // the folder for licences
	zsh      string // the folder for zsh's completions
}

// Open opens the file of a package, whose usual name it gets, with a dot in the place of the ~ of a pre-release: GitHub
// stores no ~ in names. The version inside the package keeps it, since 1.4.0~rc.1 sorts before 1.4.0.
type Open func(name string) (io.Writer, error)

// Deb writes a .deb.
func Deb(open Open, p Package) error {
	return p.write(open, format{deb.Default, "/usr/share/doc/swdt", "/usr/share/zsh/vendor-completions"})
}

// RPM writes an .rpm.
func RPM(open Open, p Package) error {
	return p.write(open, format{rpm.DefaultRPM, "/usr/share/licenses/swdt", "/usr/share/zsh/site-functions"})
}

func (p Package) write(open Open, f format) error {
	// nfpm takes the contents from files.
	work, err := os.MkdirTemp("", "swdt-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	contents, err := p.contents(f, work)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(p.info(contents))
	w, err := open(strings.ReplaceAll(f.packager.ConventionalFileName(info), "~", "."))
	if err != nil {
		return err
	}
	if err := f.packager.Package(info, w); err != nil {
		return fmt.Errorf("make the package for %s: %w", p.Arch, err)
	}
	return nil
}

func (p Package) info(contents files.Contents) *nfpm.Info {
	return &nfpm.Info{
		Name: "swdt", Arch: p.Arch, Platform: "linux", Version: p.Version, VersionSchema: "semver", Release: "1",
		Section: "admin", Priority: "optional", MTime: p.Time, DisableGlobbing: true,
		Maintainer: "The swdt authors <swdt-dev@users.noreply.github.com>",
		Vendor:     "swdt-dev", Homepage: "https://github.com/swdt-dev/swdt", License: "Apache-2.0",
		Description: "Kubernetes on Windows nodes, for developers\n" +
			"Sets up Windows nodes, pushes rebuilt binaries to them, and inspects them.",
		Overridables: nfpm.Overridables{
			Contents: contents,
			Suggests: []string{"openssh-client"},
			// The name of the machine that makes the package must not be in it.
			RPM: nfpm.RPM{BuildHost: "localhost", Summary: "Kubernetes on Windows nodes, for developers",
				Group: "System Environment/Base"},
		},
	}
}

// contents lists what the package installs, and puts it into the folder work.
func (p Package) contents(f format, work string) (files.Contents, error) {
	var all []payload.File
	program, err := p.Source.Program(payload.Target{OS: "linux", Arch: p.Arch})
	if err != nil {
		return nil, err
	}
	program.Name = "/usr/bin/swdt"
	all = append(all, program, payload.File{
		Name: "/usr/bin/kubectl_complete-swdt", Mode: payload.ModeProgram, Content: []byte(kubectlComplete)})
	for _, part := range []func(format) ([]payload.File, error){p.licences, p.completions, p.manuals} {
		more, err := part(f)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	contents := files.Contents{{Source: "swdt", Destination: "/usr/bin/kubectl-swdt", Type: files.TypeSymlink}}
	if f.packager == nfpm.Packager(rpm.DefaultRPM) { // rpm removes only the folders that a package lists
		contents = append(contents, &files.Content{Destination: f.licences, Type: files.TypeDir,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o755, MTime: p.Time}})
	}
	for _, file := range all {
		kept := filepath.Join(work, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(kept, file.Content, 0o600); err != nil {
			return nil, err
		}
		contents = append(contents, content(kept, file.Name, file.Mode, p.Time))
	}
	return contents, nil
}

func content(source, destination string, mode fs.FileMode, modified time.Time) *files.Content {
	return &files.Content{Source: source, Destination: destination,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: modified}}
}

// kubectlComplete is the program that kubectl runs to complete `kubectl swdt`.
const kubectlComplete = "#!/bin/sh\nexec kubectl-swdt __complete \"$@\"\n"

func (p Package) licences(f format) ([]payload.File, error) {
	found, err := p.Source.Licences()
	for i := range found {
		name := found[i].Name
		if f.packager == nfpm.Packager(deb.Default) && name == "LICENSE" {
			name = "copyright" // as Debian names it
		}
		found[i].Name = path.Join(f.licences, name)
	}
	return found, err
}

func (p Package) completions(f format) ([]payload.File, error) {
	found, err := p.Source.Completions()
	places := map[string]string{
		"swdt.bash": "/usr/share/bash-completion/completions/swdt",
		"_swdt":     path.Join(f.zsh, "_swdt"),
		"swdt.fish": "/usr/share/fish/vendor_completions.d/swdt.fish",
	}
	var all []payload.File
	for _, file := range found {
		if place := places[path.Base(file.Name)]; place != "" {
			file.Name = place
			all = append(all, file)
		}
	}
	return all, err
}

func (p Package) manuals(format) ([]payload.File, error) {
	found, err := p.Source.Manuals()
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].Name = "/usr/share/man/man1/" + strings.TrimPrefix(found[i].Name, "man/") + ".gz"
		if found[i].Content, err = archive.Gzip(found[i].Content); err != nil {
			return nil, err
		}
	}
	return found, nil
}
