//go:build containerd2

package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	transferimage "github.com/containerd/containerd/v2/core/transfer/image"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// pull is "client" for versions in which the CRI plugin pulls with containerd's client (2.0), and "transfer" for those in
// which it does with the transfer service unless its configuration says otherwise.
var pull string

// choose does what the CRI plugin does in a pull: it filters what it fetches, and then resolves the image, as its store.
func choose(index []entry) (choice, error) {
	none := choice{Taken: -1, Pulled: []int{}}
	i, err := newImage(index)
	if err != nil {
		return none, err
	}
	fetched, err := i.handler()(context.Background(), i.index)
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
	config, err := images.Config(context.Background(), left, i.index, platforms.Default())
	if errdefs.IsNotFound(err) {
		return made, nil
	}
	if err != nil {
		return none, err
	}
	made.Taken, err = i.placeOf(config)
	return made, err
}

// handler returns what lists the manifests to fetch.
func (i *image) handler() images.HandlerFunc {
	children := images.ChildrenHandler(i)
	if pull == "client" {
		matcher := platforms.Default()
		return images.LimitManifests(images.FilterPlatforms(children, matcher), matcher, 1)
	}
	return transferimage.NewStore("lab", transferimage.WithPlatforms(platforms.DefaultSpec())).ImageFilter(children, labels{})
}

// labels is a content store that only takes labels, and forgets them.
type labels struct{ content.Store }

// Update implements content.Manager.
func (labels) Update(context.Context, content.Info, ...string) (content.Info, error) {
	return content.Info{}, nil
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
