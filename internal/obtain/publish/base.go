package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// base is a set that the registry has.
type base struct {
	tag    string
	digest string
	set    binaryset.Set
}

// findBases reads the sets of the base tags. The target's own tag may be new. If it has an artifact
// of another kind, it is an error, since a publish would replace that.
func (p *plan) findBases(ctx context.Context) ([]base, error) {
	target := p.options.Target
	own, err := p.readBase(ctx, target.Tag)
	known := err == nil
	if err != nil && !distribution.NotFound(err) {
		return nil, err
	}
	var bases []base
	for _, tag := range p.options.Bases {
		if tag == target.Tag {
			continue
		}
		b, err := p.readBase(ctx, tag)
		if err != nil {
			return nil, err
		}
		bases = append(bases, b)
	}
	if known {
		bases = append(bases, own)
	}
	return bases, nil
}

func (p *plan) readBase(ctx context.Context, tag string) (base, error) {
	reference := p.options.Target.WithTag(tag)
	p.reporter.Step("reading %s", reference.Name())
	content, digest, err := p.registry.open(reference).Manifest(ctx)
	if err != nil {
		return base{}, err
	}
	set, err := binaryset.Parse(content)
	var other *binaryset.ManifestError
	if errors.As(err, &other) {
		return base{}, &OtherArtifactError{Reference: reference, What: other.What}
	}
	return base{tag, digest, set}, err
}

// obtain returns the path of an earlier build, which the cache or the registry has. The file has
// the hash that the base names.
func (p *plan) obtain(ctx context.Context, b base, before binaryset.Binary) (string, error) {
	path, err := p.options.Blobs.Path(ctx, before.SHA256)
	if !errors.Is(err, blobs.ErrNotHeld) {
		return path, err
	}
	staging, err := localfile.Stage(p.options.Blobs.Folder(), "publish")
	if err != nil {
		return "", err
	}
	defer func() { _ = staging.Remove() }() // a later Stage removes it
	ui.Downloading(p.reporter)
	progress := p.reporter.Transfer(before.Title, 0)
	defer progress.End()
	result, err := binaryset.Fetch(ctx, p.registry.open(p.options.Target.WithDigest(b.digest)), binaryset.Request{
		Component: before.Component, SHA256: before.SHA256, Folder: staging.Path, Progress: progress.Add,
	})
	if err != nil {
		return "", err
	}
	return p.options.Blobs.Adopt(ctx, result.Path, before.SHA256)
}

// OtherArtifactError is returned for a tag that has another artifact than a set of binaries.
type OtherArtifactError struct {
	Reference distribution.Reference
	What      string
}

func (e *OtherArtifactError) Error() string {
	return fmt.Sprintf("%s has no set of binaries (%s): choose another tag or repository", e.Reference.Name(), e.What)
}
