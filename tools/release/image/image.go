// Package image makes the container image of swdt: an OCI image layout with nothing in the image but swdt,
// its licences, root certificates and an empty /tmp.
package image

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/swdt-dev/swdt/tools/release/archive"
	"github.com/swdt-dev/swdt/tools/release/payload"
)

// Image says what the image is of.
type Image struct {
	Version string
	Commit  string
	Time    time.Time
	Source  payload.Source
}

// User is an account without rights, and without a name in the image.
const User = "65532:65532"

// Write writes a tar archive of the image's OCI layout, with an index that has an image for each processor of Linux.
func (i Image) Write(w io.Writer) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, target := range payload.Targets() {
		if target.OS != "linux" {
			continue
		}
		one, err := i.of(target)
		if err != nil {
			return err
		}
		platform := &v1.Platform{OS: target.OS, Architecture: target.Arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: platform}})
	}
	work, err := os.MkdirTemp("", "swdt-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if _, err := layout.Write(work, Named(index, i.Version)); err != nil {
		return err
	}
	files, err := filesBelow(work)
	if err != nil {
		return err
	}
	return archive.Tar(w, files, i.Time)
}

// Named returns the index of a layout with a single image or index, which has a name. A layout with an image for each
// processor under the same name would give the first of them to each processor.
func Named(one mutate.Appendable, name string) v1.ImageIndex {
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: one, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": name}},
	})
}

// of returns the image for a target.
func (i Image) of(target payload.Target) (v1.Image, error) {
	files, err := i.files(target)
	if err != nil {
		return nil, err
	}
	return Of(target.OS, target.Arch, files, i.Time, v1.Config{
		Entrypoint: []string{"/usr/bin/swdt"}, User: User, WorkingDir: "/",
		Env:    []string{"PATH=/usr/bin", "HOME=/tmp"},
		Labels: Labels("swdt", i.Version, i.Commit),
	})
}

// Labels returns the labels that describe an image of the project.
func Labels(title, version, commit string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.revision": commit,
		"org.opencontainers.image.source":   "https://github.com/swdt-dev/swdt",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// Of returns an image of one layer with the files.
func Of(system, processor string, files []payload.File, created time.Time, config v1.Config) (v1.Image, error) {
	var packed bytes.Buffer
	if err := archive.Tar(&packed, files, created); err != nil {
		return nil, err
	}
	return OfLayer(system, processor, packed.Bytes(), created, config)
}

// OfLayer returns an image of one layer, which is a tar archive. The image names no version of its system.
func OfLayer(system, processor string, packed []byte, created time.Time, config v1.Config) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	one, err := mutate.Append(base, mutate.Addendum{Layer: layer,
		History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "make"}})
	if err != nil {
		return nil, err
	}
	file, err := one.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = system, processor, v1.Time{Time: created}, config
	return mutate.ConfigFile(one, file)
}

// files returns what the image has: no shell, no libraries. /tmp is the home folder of the account, for
// sandboxes and caches.
func (i Image) files(target payload.Target) ([]payload.File, error) {
	program, err := i.Source.Program(target)
	if err != nil {
		return nil, err
	}
	program.Name = "usr/bin/swdt"
	licences, err := Licences(i.Source)
	if err != nil {
		return nil, err
	}
	roots, err := certificates()
	if err != nil {
		return nil, err
	}
	return append(licences, program, roots, payload.File{Name: "tmp", Mode: payload.ModeShared}), nil
}

// Licences returns the licences at their place in an image for Linux.
func Licences(s payload.Source) ([]payload.File, error) {
	licences, err := s.Licences()
	for n := range licences {
		licences[n].Name = "usr/share/doc/swdt/" + licences[n].Name
	}
	return licences, err
}

func filesBelow(folder string) (all []payload.File, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, payload.File{Name: filepath.ToSlash(name), Mode: payload.ModeText, Content: content})
		return err
	})
	return all, err
}
