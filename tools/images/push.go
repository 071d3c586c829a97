package main

import (
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes the only image or index of a layout, with the login of `docker login`, and prints its reference
// by digest.
func push(folder, target string, out io.Writer) error {
	descriptor, err := only(folder)
	if err != nil {
		return err
	}
	reference, err := name.NewTag(target, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("%s is no REGISTRY/REPOSITORY:TAG: %w", target, err)
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return err
	}
	login := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if descriptor.MediaType.IsIndex() {
		child, err := index.ImageIndex(descriptor.Digest)
		if err != nil {
			return err
		}
		err = remote.WriteIndex(reference, child, login)
		if err != nil {
			return fmt.Errorf("push %s: %w", target, err)
		}
	} else {
		child, err := index.Image(descriptor.Digest)
		if err != nil {
			return err
		}
		if err := remote.Write(reference, child, login); err != nil {
			return fmt.Errorf("push %s: %w", target, err)
		}
	}
	_, err = fmt.Fprintln(out, reference.Context().Digest(descriptor.Digest.String()))
	return err
}

// only returns the descriptor of the only image or index of a layout.
func only(folder string) (v1.Descriptor, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("read the layout %s: %w; `make images` makes the layouts", folder, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	if len(manifest.Manifests) != 1 {
		return v1.Descriptor{}, fmt.Errorf("the layout %s has %d images, want one of `make images`", folder,
			len(manifest.Manifests))
	}
	return manifest.Manifests[0], nil
}
