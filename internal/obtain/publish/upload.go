package publish

import (
	"bytes"
	"context"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	orasregistry "oras.land/oras-go/v2/registry"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// registry is the repository that is written to. All requests share the client, and so the login.
type registry struct {
	target     distribution.Reference
	options    distribution.Options
	repository *remote.Repository
}

func newRegistry(o Options) *registry {
	options := distribution.Options{Credential: o.Credential, HTTP: o.HTTP}
	return &registry{o.Target, options, &remote.Repository{
		Client:    distribution.NewClient(options),
		Reference: orasregistry.Reference{Registry: o.Target.Registry, Repository: o.Target.Repository},
		PlainHTTP: o.Target.PlainHTTP,
	}}
}

// open returns the repository for reading.
func (r *registry) open(reference distribution.Reference) *distribution.Repository {
	return distribution.Open(reference, r.options)
}

func described(mediaType string, b distribution.Blob) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.Digest(b.Digest), Size: b.Size}
}

// has reports whether the registry has a blob.
func (r *registry) has(ctx context.Context, b distribution.Blob) (bool, error) {
	found, err := r.repository.Blobs().Exists(ctx, described("application/octet-stream", b))
	return found, r.failed(ctx, err)
}

func (r *registry) failed(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		err = distribution.Failed(r.target, err)
	}
	return err
}

// upload sends what the registry lacks, and the manifest last.
func (p *plan) upload(ctx context.Context, report *Report) error {
	// One token for reading and writing, whatever the first request is.
	ctx = auth.AppendRepositoryScope(ctx, p.registry.repository.Reference, auth.ActionPull, auth.ActionPush)
	empty := []byte(binaryset.EmptyConfig)
	p.layers[distribution.DigestOf(empty)] = empty
	sent := map[string]int64{}
	for digest, content := range p.layers {
		n, err := p.uploadLayer(ctx, distribution.Blob{Digest: digest, Size: int64(len(content))}, content)
		if err != nil {
			return err
		}
		sent[digest] = n
	}
	manifest := distribution.Blob{Digest: distribution.DigestOf(p.manifest), Size: int64(len(p.manifest))}
	err := p.registry.repository.Manifests().PushReference(ctx, described(distribution.ManifestType, manifest),
		bytes.NewReader(p.manifest), p.options.Target.Tag)
	if err != nil {
		return p.registry.failed(ctx, err)
	}
	report.addSent(sent, manifest.Size)
	return nil
}

// uploadLayer sends a layer, unless the registry has it, and returns how many bytes it sent.
func (p *plan) uploadLayer(ctx context.Context, b distribution.Blob, content []byte) (int64, error) {
	if held, err := p.registry.has(ctx, b); held || err != nil {
		return 0, err
	}
	progress := p.reporter.Transfer(p.title(b.Digest), b.Size)
	defer progress.End()
	reader := &countingReader{bytes.NewReader(content), progress}
	err := p.registry.repository.Blobs().Push(ctx, described("application/octet-stream", b), reader)
	return b.Size, p.registry.failed(ctx, err)
}

// title returns the name of a layer for people.
func (p *plan) title(digest string) string {
	for _, b := range p.set.Binaries {
		if b.Layer.Digest == digest {
			return b.Title
		}
		for _, patch := range b.Patches {
			if patch.Layer.Digest == digest {
				return "patch of " + b.Title
			}
		}
	}
	return "config"
}

// countingReader reports the bytes that are read.
type countingReader struct {
	reader   io.Reader
	progress ui.Progress
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.reader.Read(p)
	r.progress.Add(int64(n))
	return n, err
}
