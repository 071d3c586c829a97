package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/swdt-dev/swdt/tools/release/image"
	"github.com/swdt-dev/swdt/tools/release/payload"
)

// The layouts, and the repositories in the manifests of a fleet's installation.
const (
	controller = "swdt-controller"
	node       = "swdt-node"
)

// maker makes the images of one version.
type maker struct {
	version, commit string
	created         time.Time
	source          payload.Source
}

// layouts writes a layout for each image below folder, and prints their digests.
func (m maker) layouts(folder string, out io.Writer) error {
	index, err := m.controller()
	if err != nil {
		return fmt.Errorf("make %s: %w", controller, err)
	}
	image, err := m.node()
	if err != nil {
		return fmt.Errorf("make %s: %w", node, err)
	}
	for name, add := range map[string]mutate.Appendable{controller: index, node: image} {
		if err := m.write(filepath.Join(folder, name), add); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	for _, name := range []string{controller, node} {
		descriptor, err := only(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s\n", filepath.Join(folder, name), descriptor.Digest)
	}
	return nil
}

// write replaces the layout of a folder by one with a single image or index.
func (m maker) write(folder string, one mutate.Appendable) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	_, err := layout.Write(folder, image.Named(one, m.version))
	return err
}

// controller returns an index with an image of the controller for each processor.
func (m maker) controller() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, processor := range []string{"amd64", "arm64"} {
		files, err := image.Licences(m.source)
		if err != nil {
			return nil, err
		}
		program, err := m.program(controller+"-linux-"+processor, "usr/bin/"+controller)
		if err != nil {
			return nil, err
		}
		one, err := image.Of("linux", processor, append(files, program), m.created, v1.Config{
			Entrypoint: []string{"/" + program.Name}, User: image.User, WorkingDir: "/",
			Labels: image.Labels(controller, m.version, m.commit),
		})
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: processor}}})
	}
	return index, nil
}

// node returns the image of the program on the nodes, for HostProcess containers.
func (m maker) node() (v1.Image, error) {
	files, err := m.source.Licences()
	if err != nil {
		return nil, err
	}
	program, err := m.program(node+".exe", node+".exe")
	if err != nil {
		return nil, err
	}
	layer, err := windowsLayer(append(files, program), m.created)
	if err != nil {
		return nil, err
	}
	return image.OfLayer("windows", "amd64", layer, m.created, v1.Config{
		Entrypoint: []string{`%CONTAINER_SANDBOX_MOUNT_POINT%\` + program.Name},
		Labels:     image.Labels(node, m.version, m.commit),
	})
}

// program reads a program that `make images` has built, for its place in an image.
func (m maker) program(file, place string) (payload.File, error) {
	content, err := os.ReadFile(filepath.Join(m.source.Bin, "fleet", file))
	return payload.File{Name: place, Mode: payload.ModeProgram, Content: content}, err
}
