package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/tools/release/archive"
	"github.com/swdt-dev/swdt/tools/release/checksum"
	"github.com/swdt-dev/swdt/tools/release/image"
	"github.com/swdt-dev/swdt/tools/release/linuxpkg"
	"github.com/swdt-dev/swdt/tools/release/manifest"
	"github.com/swdt-dev/swdt/tools/release/notes"
	"github.com/swdt-dev/swdt/tools/release/payload"
	"github.com/swdt-dev/swdt/tools/release/provenance"
	"github.com/swdt-dev/swdt/tools/release/sbom"
	"github.com/swdt-dev/swdt/tools/release/signature"
	"github.com/swdt-dev/swdt/tools/release/version"
)

// release is a release in the making.
type release struct {
	described string // what `git describe` printed, or a tag
	version   version.Version
	commit    string    // the whole hash
	changed   bool      // files differed from the commit
	time      time.Time // of the commit: all files get it
	source    payload.Source
	key       *signature.Key // nil: the release is not signed
	out       io.Writer      // gets a line for each file
	folder    string         // gets the files
}

// replace makes the release in a new folder and puts that in the place of an older one, so that the folder
// is complete or as it was.
func (r *release) replace(folder string) error {
	work, err := os.MkdirTemp(filepath.Dir(filepath.Clean(folder)), ".release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r.folder = filepath.Join(work, "release")
	if err := os.Mkdir(r.folder, 0o755); err != nil {
		return err
	}
	if err := r.make(); err != nil {
		return fmt.Errorf("make the release %s: %w", r.version.Semver, err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.Rename(r.folder, folder)
}

func (r *release) make() error {
	for _, step := range []func() error{
		r.notes,
		r.archives,
		r.packages,
		r.image,
		r.manifests,
		r.sbom,
		r.provenance,
		r.checksums,
		r.signature,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// notes writes the changelog's section of this version.
func (r *release) notes() error {
	changelog, err := os.ReadFile(filepath.Join(r.source.Repository, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := notes.Of(string(changelog), r.version)
	if err != nil {
		return err
	}
	return r.write("RELEASE_NOTES.md", []byte(text))
}

// archives writes an archive for each target: zip for Windows, which opens it without other programs.
func (r *release) archives() error {
	for _, target := range payload.Targets() {
		files, err := r.source.Archive(target)
		if err != nil {
			return err
		}
		write := archive.TarGz
		if target.OS == "windows" {
			write = archive.Zip
		}
		var b bytes.Buffer
		if err := write(&b, files, r.time); err != nil {
			return fmt.Errorf("pack swdt for %s: %w", target, err)
		}
		if err := r.write(r.archive(target), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// archive returns the name of a target's archive.
func (r *release) archive(target payload.Target) string {
	extension := ".tar.gz"
	if target.OS == "windows" {
		extension = ".zip"
	}
	return fmt.Sprintf("swdt_%s_%s%s", r.version.Semver, target, extension)
}

// packages writes the packages for Linux.
func (r *release) packages() error {
	for _, target := range payload.Targets() {
		if target.OS != "linux" {
			continue
		}
		p := linuxpkg.Package{Version: r.version.Semver, Arch: target.Arch, Time: r.time, Source: r.source}
		for _, write := range []func(linuxpkg.Open, linuxpkg.Package) error{linuxpkg.Deb, linuxpkg.RPM} {
			var b bytes.Buffer
			var name string
			open := func(usual string) (io.Writer, error) {
				name = usual
				return &b, nil
			}
			if err := write(open, p); err != nil {
				return err
			}
			if err := r.write(name, b.Bytes()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) image() error {
	var b bytes.Buffer
	i := image.Image{Version: r.version.Semver, Commit: r.commit, Time: r.time, Source: r.source}
	if err := i.Write(&b); err != nil {
		return fmt.Errorf("make the container image: %w", err)
	}
	return r.write(fmt.Sprintf("swdt_%s_image.tar", r.version.Semver), b.Bytes())
}

// manifests writes the manifests of package managers, which need the hashes of the archives.
func (r *release) manifests() error {
	m := manifest.Release{Version: r.version, Time: r.time}
	for _, target := range payload.Targets() {
		name := r.archive(target)
		sum, err := checksum.Of(filepath.Join(r.folder, name))
		if err != nil {
			return err
		}
		m.Archives = append(m.Archives, manifest.Archive{Target: target, Name: name, SHA256: sum})
	}
	all, err := m.Write()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := r.write(name, all[name]); err != nil {
			return err
		}
	}
	return nil
}

// sbom writes the list of what swdt is made of, for all targets and with the programs inside.
func (r *release) sbom() error {
	notices, err := os.ReadFile(filepath.Join(r.source.Repository, "THIRD_PARTY_NOTICES"))
	if err != nil {
		return err
	}
	inside, err := r.source.Inside()
	if err != nil {
		return err
	}
	s := sbom.Release{Version: r.version.Semver, Time: r.time, Notices: string(notices)}
	var names []string
	for _, path := range inside {
		names = append(names, filepath.Base(path))
		s.Programs = append(s.Programs, sbom.Program{Name: filepath.Base(path), Path: path})
	}
	for _, target := range payload.Targets() {
		path := r.source.Path(target)
		s.Programs = append(s.Programs, sbom.Program{Name: filepath.Base(path), Path: path, Inside: names})
	}
	text, err := s.Write()
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("swdt_%s.spdx.json", r.version.Semver), text)
}

// provenance writes what all files so far were made from.
func (r *release) provenance() error {
	files, err := checksum.Folder(r.folder)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(r.source.Path(payload.Targets()[0]))
	if err != nil {
		return err
	}
	text, err := provenance.Build{Described: r.described, Commit: r.commit, Go: info.GoVersion, Files: files,
		Dirty: r.changed}.Write()
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("swdt_%s.intoto.json", r.version.Semver), text)
}

// checksums writes the list of all other files, so it comes after them.
func (r *release) checksums() error {
	entries, err := checksum.Folder(r.folder)
	if err != nil {
		return err
	}
	return r.write(checksum.File, checksum.Format(entries))
}

// signature signs the list of all files, and with it the files.
func (r *release) signature() error {
	if r.key == nil {
		_, err := fmt.Fprintf(r.out, "not signed: neither %s nor %s is set\n", signature.FileVariable,
			signature.KeyVariable)
		return err
	}
	list, err := os.ReadFile(filepath.Join(r.folder, checksum.File))
	if err != nil {
		return err
	}
	signed := r.key.Sign(list, "swdt "+r.version.Semver+" "+checksum.File)
	if err := r.write(checksum.File+signature.Extension, signed); err != nil {
		return err
	}
	_, err = fmt.Fprintln(r.out, "signed by the public key", r.key.Public())
	return err
}

// publishable matches the names that GitHub keeps: it stores a file under its base name, with a dot in the place of
// any other character.
var publishable = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)

// write writes a file of the release. Its time is that of the commit, for whoever copies it with its time.
func (r *release) write(name string, content []byte) error {
	if !publishable.MatchString(name) {
		return fmt.Errorf("write %s: GitHub would publish it under another name than %s lists", name, checksum.File)
	}
	path := filepath.Join(r.folder, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%10d  %s\n", len(content), name)
	return os.Chtimes(path, r.time, r.time)
}
