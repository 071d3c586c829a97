package binaryset_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/delta"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

const repository = "team/node"

// published is a set with the kubelet `now`, and a patch from the kubelet `before`.
type published struct {
	registry    *registrytest.Registry
	before, now []byte
	set         binaryset.Set
	patch       []byte
	folder      string
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func compress(t *testing.T, content []byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	return encoder.EncodeAll(content, nil)
}

func publish(t *testing.T) *published {
	t.Helper()
	p := &published{registry: registrytest.Start(t), before: make([]byte, 400_000), folder: t.TempDir()}
	random := rand.NewChaCha8([32]byte{2})
	_, _ = random.Read(p.before)
	p.now = append(bytes.Clone(p.before[:200_000]), append([]byte("one more line"), p.before[200_000:]...)...)
	var patch bytes.Buffer
	if _, err := delta.Diff(t.Context(), p.before, p.now, &patch, delta.Options{Variant: delta.Small}); err != nil {
		t.Fatal(err)
	}
	p.patch = patch.Bytes()
	p.set = binaryset.Set{Binaries: []binaryset.Binary{{
		Component: "kubelet", Title: "kubelet.exe", Version: "1.36.3", Destination: `C:\k\kubelet.exe`,
		SHA256: hashOf(p.now), Size: int64(len(p.now)), Layer: p.blob(t, compress(t, p.now)),
		Patches: []binaryset.Patch{{Base: hashOf(p.before), Layer: p.blob(t, p.patch)}},
	}}}
	return p
}

func (p *published) blob(t *testing.T, content []byte) distribution.Blob {
	t.Helper()
	return distribution.Blob{Digest: p.registry.PutBlob(t, repository, content), Size: int64(len(content))}
}

// open publishes the set, and returns the repository with the set's digest as its reference.
func (p *published) open(t *testing.T) *distribution.Repository {
	t.Helper()
	manifest, err := p.set.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest := p.registry.PutManifest(t, repository, "v2", manifest)
	reference, err := distribution.ParseReference(p.registry.Host + "/" + repository + "@" + digest)
	if err != nil {
		t.Fatal(err)
	}
	return distribution.Open(reference, distribution.Options{})
}

// holding returns a Held for one file with this content under the given hash.
func holding(t *testing.T, hash string, content []byte) func(context.Context, string) (string, bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "held.exe")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(_ context.Context, wanted string) (string, bool) { return path, wanted == hash }
}

func (p *published) fetch(t *testing.T, request binaryset.Request) (binaryset.Result, error) {
	t.Helper()
	request.Component, request.Folder = "kubelet", p.folder
	return binaryset.Fetch(t.Context(), p.open(t), request)
}

// mustFetch fetches kubelet, and fails if the file is not the kubelet of the set or if other files
// are left in the folder.
func (p *published) mustFetch(t *testing.T, method binaryset.Method, request binaryset.Request) binaryset.Result {
	t.Helper()
	result, err := p.fetch(t, request)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(result.Path)
	if err != nil || !bytes.Equal(content, p.now) || result.Method != method {
		t.Fatalf("got %d bytes by method %s, %v; want %d by %s", len(content), result.Method, err, len(p.now), method)
	}
	p.mustHave(t, hashOf(p.now))
	return result
}

func (p *published) mustHave(t *testing.T, names ...string) {
	t.Helper()
	var got []string
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder has %q, want %q", got, names)
	}
}

func TestFetchWhole(t *testing.T) {
	p := publish(t)
	result := p.mustFetch(t, binaryset.MethodWhole, binaryset.Request{SHA256: hashOf(p.now)})
	if result.Received != p.set.Binaries[0].Layer.Size || result.Binary.Version != "1.36.3" {
		t.Errorf("the result is %+v", result)
	}
}

func TestFetchByPatch(t *testing.T) {
	p := publish(t)
	result := p.mustFetch(t, binaryset.MethodPatch, binaryset.Request{Held: holding(t, hashOf(p.before), p.before)})
	if result.Received != int64(len(p.patch)) || result.Received > 1000 {
		t.Errorf("received %d bytes, want the patch's %d", result.Received, len(p.patch))
	}
}

func TestNothingIsFetchedTwice(t *testing.T) {
	p := publish(t)
	if result := p.mustFetch(t, binaryset.MethodNone, binaryset.Request{Held: holding(t, hashOf(p.now), p.now)}); result.
		Received != 0 {
		t.Errorf("received %d bytes", result.Received)
	}
	if result := p.mustFetch(t, binaryset.MethodNone, binaryset.Request{}); result.Received != 0 {
		t.Errorf("received %d bytes the second time", result.Received)
	}
}

// A caller's file may not be what it should be.
func TestWrongFilesOfTheCallerCostOnlyBytes(t *testing.T) {
	for name, held := range map[string]struct {
		hash    func(*published) []byte
		content func(*published) []byte
	}{
		"a changed base": {func(p *published) []byte { return p.before }, func(p *published) []byte {
			return make([]byte, len(p.before))
		}},
		"a base of another size": {func(p *published) []byte { return p.before }, func(p *published) []byte {
			return p.before[:10]
		}},
		"a changed binary": {func(p *published) []byte { return p.now }, func(p *published) []byte {
			return make([]byte, len(p.now))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := publish(t)
			p.mustFetch(t, binaryset.MethodWhole,
				binaryset.Request{Held: holding(t, hashOf(held.hash(p)), held.content(p))})
		})
	}
	t.Run("a missing file", func(t *testing.T) {
		p := publish(t)
		p.mustFetch(t, binaryset.MethodWhole, binaryset.Request{
			Held: func(context.Context, string) (string, bool) { return filepath.Join(t.TempDir(), "missing"), true }})
	})
}

// The publisher of a set, or a registry if the reference is a tag, may be hostile.
func TestAHostileSetIsRefused(t *testing.T) {
	t.Run("a bomb", func(t *testing.T) {
		p := publish(t)
		p.set.Binaries[0].Layer = p.blob(t, compress(t, make([]byte, 200<<20)))
		mustBeContentError(t, p, binaryset.Request{})
	})
	t.Run("a window of 512 MiB", func(t *testing.T) {
		p := publish(t)
		// magic, frame header: no sizes; window descriptor: 2^(10+19); an empty last block
		p.set.Binaries[0].Layer = p.blob(t, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 19 << 3, 0x01, 0x00, 0x00})
		mustBeContentError(t, p, binaryset.Request{})
	})
	t.Run("no zstd", func(t *testing.T) {
		p := publish(t)
		p.set.Binaries[0].Layer = p.blob(t, []byte("MZ, uncompressed"))
		mustBeContentError(t, p, binaryset.Request{})
	})
	t.Run("another binary", func(t *testing.T) {
		p := publish(t)
		p.set.Binaries[0].Layer = p.blob(t, compress(t, make([]byte, len(p.now))))
		mustBeContentError(t, p, binaryset.Request{})
	})
	t.Run("fewer bytes", func(t *testing.T) {
		p := publish(t)
		p.set.Binaries[0].Layer = p.blob(t, compress(t, p.now[:10]))
		mustBeContentError(t, p, binaryset.Request{})
	})
	t.Run("a layer larger than its binary", func(t *testing.T) {
		p := publish(t)
		p.set.Binaries[0].Layer = p.blob(t, make([]byte, 2*len(p.now)))
		mustBeContentError(t, p, binaryset.Request{})
		if sent := p.registry.Sent(); sent > 10_000 {
			t.Errorf("%d bytes of the layer were read", sent)
		}
	})
	t.Run("a huge binary", func(t *testing.T) {
		p := publish(t)
		_, err := p.fetch(t, binaryset.Request{MaxSize: int64(len(p.now)) - 1})
		var size *binaryset.SizeError
		if !errors.As(err, &size) {
			t.Errorf("the error is %v, want a %T", err, size)
		}
		p.mustHave(t)
	})
	t.Run("another hash than the wanted", func(t *testing.T) {
		p := publish(t)
		_, err := p.fetch(t, binaryset.Request{SHA256: hashOf(p.before)})
		var hash *binaryset.HashError
		if !errors.As(err, &hash) {
			t.Errorf("the error is %v, want a %T", err, hash)
		}
		p.mustHave(t)
	})
}

func mustBeContentError(t *testing.T, p *published, request binaryset.Request) {
	t.Helper()
	_, err := p.fetch(t, request)
	var wrong *binaryset.ContentError
	if !errors.As(err, &wrong) {
		t.Errorf("the error is %v, want a %T", err, wrong)
	}
	p.mustHave(t)
}

func TestAHostilePatchCostsOnlyItsBytes(t *testing.T) {
	other := func(t *testing.T, p *published, old, result []byte) []byte {
		var patch bytes.Buffer
		if _, err := delta.Diff(t.Context(), old, result, &patch, delta.Options{Variant: delta.Small}); err != nil {
			t.Fatal(err)
		}
		return patch.Bytes()
	}
	for name, patch := range map[string]func(*testing.T, *published) []byte{
		"no patch":     func(*testing.T, *published) []byte { return []byte("swdtdiff, but no patch") },
		"damaged":      func(_ *testing.T, p *published) []byte { return p.patch[:len(p.patch)-1] },
		"another base": func(t *testing.T, p *published) []byte { return other(t, p, p.now, p.now) },
		"another goal": func(t *testing.T, p *published) []byte { return other(t, p, p.before, p.before) },
		"expanding": func(t *testing.T, p *published) []byte { // 50 MB, under the header of the real one
			endless := other(t, p, p.before, bytes.Repeat([]byte("a run of bytes"), 4<<20))
			return append(bytes.Clone(p.patch[:90]), endless[90:]...)
		},
		"a header only": func(_ *testing.T, p *published) []byte { return p.patch[:90] },
	} {
		t.Run(name, func(t *testing.T) {
			p := publish(t)
			p.set.Binaries[0].Patches[0].Layer = p.blob(t, patch(t, p))
			p.mustFetch(t, binaryset.MethodWhole, binaryset.Request{Held: holding(t, hashOf(p.before), p.before)})
		})
	}
}

func TestOtherArtifactsAreRefused(t *testing.T) {
	p := publish(t)
	reference, err := distribution.ParseReference(p.registry.Host + "/" + repository + ":other")
	if err != nil {
		t.Fatal(err)
	}
	p.registry.PutManifest(t, repository, "other", []byte(`{"schemaVersion":2,`+
		`"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{},"layers":[]}`))
	_, err = binaryset.Fetch(t.Context(), distribution.Open(reference, distribution.Options{}),
		binaryset.Request{Component: "kubelet", Folder: p.folder})
	var other *binaryset.ManifestError
	if !errors.As(err, &other) {
		t.Errorf("the error is %v, want a %T", err, other)
	}
	_, err = binaryset.Fetch(t.Context(), p.open(t), binaryset.Request{Component: "kube-proxy", Folder: p.folder})
	var missing *binaryset.ComponentError
	if !errors.As(err, &missing) {
		t.Errorf("the error is %v, want a %T", err, missing)
	}
}
