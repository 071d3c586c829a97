//go:build !containerd2

package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/containerd/containerd/content"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/images"
	"github.com/containerd/containerd/platforms"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// choose does what the CRI plugin does in a pull: it filters and limits what it fetches, as Client.fetch, and then resolves
// the image, as its store.
func choose(index []entry) (choice, error) {
	none := choice{Taken: -1, Pulled: []int{}}
	i, err := newImage(index)
	if err != nil {
		return none, err
	}
	//lint:ignore SA1019 the CRI plugin of 1.6 and 1.7 calls it
	matcher := platforms.Default()
	handler := images.LimitManifests(images.FilterPlatforms(images.ChildrenHandler(i), matcher), matcher, 1)
	fetched, err := handler(context.Background(), i.index)
	if errdefs.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	made := choice{Taken: -1, Pulled: i.places(fetched)}
	left, err := i.without(made.Pulled)
	if err != nil {
		return none, err
	}
	config, err := images.Config(context.Background(), left, i.index, matcher)
	if errdefs.IsNotFound(err) {
		return made, nil
	}
	if err != nil {
		return none, err
	}
	made.Taken, err = i.placeOf(config)
	return made, err
}

// ReaderAt implements content.Provider.
func (i *image) ReaderAt(_ context.Context, d ocispec.Descriptor) (content.ReaderAt, error) {
	blob, ok := i.blobs[d.Digest]
	if !ok {
		return nil, fmt.Errorf("%s: %w", d.Digest, errdefs.ErrNotFound)
	}
	return reader{bytes.NewReader(blob)}, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }
