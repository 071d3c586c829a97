package distribution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"oras.land/oras-go/v2/registry"
)

// Media types of manifests. Those of Docker name the same documents.
const (
	ManifestType       = "application/vnd.oci.image.manifest.v1+json"
	IndexType          = "application/vnd.oci.image.index.v1+json"
	dockerManifestType = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndexType    = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// maxManifest is the maximum size of a manifest in bytes. Registries accept 4 MiB; the manifest of
// a set of binaries has some kilobytes.
const maxManifest = 1 << 20

// DigestOf returns the digest of content.
func DigestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Manifest returns the manifest of the repository's reference, and its digest. If the reference is
// a digest, the manifest has that digest. If it is a tag, the registry decides which manifest that
// is. The error is a *StatusError with Status 404 if the registry has no such manifest.
func (r *Repository) Manifest(ctx context.Context) (content []byte, digest string, err error) {
	return r.manifest(ctx, ManifestType, IndexType)
}

// ImageManifest is like Manifest, but also accepts the manifests and indexes of Docker.
func (r *Repository) ImageManifest(ctx context.Context) (content []byte, digest string, err error) {
	return r.manifest(ctx, ManifestType, IndexType, dockerManifestType, dockerIndexType)
}

func (r *Repository) manifest(ctx context.Context, types ...string) (content []byte, digest string, err error) {
	response, err := r.get(ctx, "manifests/"+r.reference.name(), http.Header{"Accept": types})
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, "", &StatusError{Reference: r.reference, Status: response.StatusCode}
	}
	content, err = readAll(response.Body, maxManifest)
	if err != nil {
		return nil, "", fmt.Errorf("read the manifest of %s: %w", r.reference.Name(), r.failed(ctx, err))
	}
	digest = DigestOf(content)
	if want := r.reference.Digest; want != "" && digest != want {
		return nil, "", &MismatchError{Reference: r.reference, Want: want, Got: digest}
	}
	return content, digest, nil
}

// ociReference returns the reference in the form of the library that keeps tokens.
func (r Reference) ociReference() registry.Reference {
	return registry.Reference{Registry: r.Registry, Repository: r.Repository, Reference: r.name()}
}
