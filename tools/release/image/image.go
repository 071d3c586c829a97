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

// user is an account without rights, and without a name in the image.
const user = "65532:65532"

// Write writes a tar archive of the image's OCI layout, with an image for each processor of Linux.
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
			MediaType: types.OCIManifestSchema1, Platform: platform,
			Annotations: map[string]string{"org.opencontainers.image.ref.name": i.Version}}})
	}
	work, err := os.MkdirTemp("", "swdt-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if _, err := layout.Write(work, index); err != nil {
		return err
	}
	files, err := filesBelow(work)
	if err != nil {
		return err
	}
	return archive.Tar(w, files, i.Time)
}

// of returns the image for a target.
func (i Image) of(target payload.Target) (v1.Image, error) {
	files, err := i.files(target)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	if err := archive.Tar(&packed, files, i.Time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: i.Time}
	one, err := mutate.Append(base, mutate.Addendum{Layer: layer,
		History: v1.History{Created: created, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	config, err := one.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = target.OS, target.Arch, created
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/swdt"}, User: user, WorkingDir: "/",
		Env: []string{"PATH=/usr/bin", "HOME=/tmp"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "swdt",
			"org.opencontainers.image.version":  i.Version,
			"org.opencontainers.image.revision": i.Commit,
			"org.opencontainers.image.source":   "https://github.com/swdt-dev/swdt",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(one, config)
}

// files returns what the image has: no shell, no libraries. /tmp is the home folder of the account, for
// sandboxes and caches.
func (i Image) files(target payload.Target) ([]payload.File, error) {
	program, err := i.Source.Program(target)
	if err != nil {
		return nil, err
	}
	program.Name = "usr/bin/swdt"
	licences, err := i.Source.Licences()
	if err != nil {
		return nil, err
	}
	for n := range licences {
		licences[n].Name = "usr/share/doc/swdt/" + licences[n].Name
	}
	roots, err := certificates()
	if err != nil {
		return nil, err
	}
	return append(licences, program, roots, payload.File{Name: "tmp", Mode: payload.ModeShared}), nil
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
