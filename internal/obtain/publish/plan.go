package publish

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/delta"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// window is the size of zstd's window in bytes. Readers refuse a larger one.
const window = 8 << 20

// plan describes the layers and the manifest that the registry should have.
type plan struct {
	options  Options
	registry *registry
	reporter ui.Reporter

	bases    []base
	set      binaryset.Set
	manifest []byte
	// layers are the contents of the new layers by digest. Layers of earlier sets are not in it.
	layers map[string][]byte
}

func newPlan(ctx context.Context, components []Component, o Options, r ui.Reporter) (*plan, error) {
	p := &plan{options: o, registry: newRegistry(o), reporter: r, layers: map[string][]byte{}}
	var err error
	if p.bases, err = p.findBases(ctx); err != nil {
		return nil, err
	}
	for _, c := range components {
		binary, err := p.binary(ctx, c)
		if err != nil {
			return nil, err
		}
		p.set.Binaries = append(p.set.Binaries, binary)
	}
	slices.SortFunc(p.set.Binaries, func(a, b binaryset.Binary) int { return cmp.Compare(a.Component, b.Component) })
	p.manifest, err = p.set.Manifest()
	return p, err
}

// unchanged reports whether the tag has the set already.
func (p *plan) unchanged() bool {
	return slices.ContainsFunc(p.bases, func(b base) bool {
		return b.tag == p.options.Target.Tag && b.digest == distribution.DigestOf(p.manifest)
	})
}

// binary makes the layer of a component, and its patches.
func (p *plan) binary(ctx context.Context, c Component) (binaryset.Binary, error) {
	p.reporter.Step("compressing %s", c.Title)
	content, err := blobs.MapFile(c.Binary.Path)
	if err != nil {
		return binaryset.Binary{}, fmt.Errorf("read %s: %w", c.Binary.Path, err)
	}
	defer content.Close()
	layer, err := compressed(content.Bytes)
	if err != nil {
		return binaryset.Binary{}, fmt.Errorf("compress %s: %w", c.Binary.Path, err)
	}
	if sum := sha256.Sum256(content.Bytes); hex.EncodeToString(sum[:]) != c.Binary.SHA256 || ctx.Err() != nil {
		return binaryset.Binary{}, cmp.Or[error](context.Cause(ctx), &source.ChangingError{Path: c.Binary.Path})
	}
	b := binaryset.Binary{
		Component: c.Name, Title: c.Title, Version: c.Version, Destination: c.Destination,
		SHA256: c.Binary.SHA256, Size: c.Binary.Size, Layer: p.add(layer),
	}
	for _, base := range p.bases {
		if err := p.addPatches(ctx, base, &b, content.Bytes); err != nil {
			return binaryset.Binary{}, err
		}
	}
	return b, nil
}

func (p *plan) add(layer []byte) distribution.Blob {
	blob := distribution.Blob{Digest: distribution.DigestOf(layer), Size: int64(len(layer))}
	p.layers[blob.Digest] = layer
	return blob
}

// addPatches adds the patches that a base is good for. If the base has another build of the
// component, that is a patch from this build. If it has the same build, these are the base's own
// patches to it: so the same binaries can be published twice.
func (p *plan) addPatches(ctx context.Context, base base, b *binaryset.Binary, content []byte) error {
	before, err := base.set.Find(b.Component)
	if err != nil {
		return nil // the component is new
	}
	if before.SHA256 == b.SHA256 {
		for _, patch := range before.Patches {
			held, err := p.registry.has(ctx, patch.Layer)
			if err != nil {
				return err
			}
			if held && !hasPatch(*b, patch.Base) {
				b.Patches = append(b.Patches, patch)
			}
		}
		return nil
	}
	if hasPatch(*b, before.SHA256) {
		return nil
	}
	p.reporter.Step("making the patch of %s from %s", b.Title, base.tag)
	layer, err := p.patch(ctx, base, before, content, b.SHA256)
	if err != nil {
		return fmt.Errorf("make the patch of %s from %s: %w", b.Title, base.tag, err)
	}
	if int64(len(layer)) < b.Layer.Size { // else the patch is of no use
		b.Patches = append(b.Patches, binaryset.Patch{Base: before.SHA256, Layer: p.add(layer)})
	}
	return nil
}

func hasPatch(b binaryset.Binary, sha256 string) bool {
	return slices.ContainsFunc(b.Patches, func(p binaryset.Patch) bool { return p.Base == sha256 })
}

func (p *plan) patch(ctx context.Context, base base, before binaryset.Binary, content []byte, hash string) ([]byte,
	error) {
	path, err := p.obtain(ctx, base, before)
	if err != nil {
		return nil, err
	}
	old, err := blobs.MapFile(path)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	from, to, err := sums(before.SHA256, hash)
	if err != nil {
		return nil, err
	}
	var patch bytes.Buffer
	_, err = delta.Diff(ctx, old.Bytes, content, &patch,
		delta.Options{Variant: delta.Small, OldSHA256: &from, NewSHA256: &to})
	return patch.Bytes(), err
}

func sums(from, to string) (a, b [32]byte, err error) {
	for text, sum := range map[string]*[32]byte{from: &a, to: &b} {
		if _, err := hex.Decode(sum[:], []byte(text)); err != nil {
			return a, b, fmt.Errorf("read a hash: %w", err)
		}
	}
	return a, b, nil
}

// compressed returns the content as a layer. It compresses with one goroutine, so that the same
// content always has the same digest.
func compressed(content []byte) ([]byte, error) {
	var layer bytes.Buffer
	encoder, err := zstd.NewWriter(&layer, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
		zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, err
	}
	_, err = encoder.Write(content)
	err = errors.Join(err, encoder.Close())
	return layer.Bytes(), err
}
