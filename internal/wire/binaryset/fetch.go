package binaryset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// DefaultMaxSize is the maximum size of a binary in bytes if a Request has none, many times the
// largest binary.
const DefaultMaxSize = 1 << 30

// NoLimit is a MaxSize that permits every size.
const NoLimit = math.MaxInt64

// Method is the way in which a binary was fetched.
type Method string

const (
	MethodNone  Method = "none"  // the caller had the binary already
	MethodPatch Method = "patch" // by a patch from an earlier build
	MethodWhole Method = "whole"
)

// Request names a binary to fetch.
type Request struct {
	Component string
	// SHA256 is the hash that the binary must have, hexadecimal; "" for any.
	SHA256 string
	// MaxSize is the maximum size of the binary in bytes; 0 means DefaultMaxSize.
	MaxSize int64
	// Folder gets the binary and, until the binary is complete, unfinished files. It must exist, and
	// only the caller may write into it. Names in it are made of hashes alone.
	Folder string
	// Held returns the path of a file that the caller has and that should have this SHA-256. Fetch
	// does not rely on that. nil means that the caller has no files.
	Held func(ctx context.Context, sha256 string) (path string, ok bool)
	// Progress, if set, is called with the number of bytes that arrived since the last call.
	Progress func(int64)
}

// Result describes a binary that was fetched.
type Result struct {
	Path     string // Folder and the binary's SHA-256
	Binary   Binary
	Digest   string // of the manifest
	Method   Method
	Received int64 // bytes of layers that the registry sent, in this call
}

// Fetch fetches a binary of a set from a registry into a file, which has the SHA-256 that the
// manifest names. If the repository's reference is a digest, the registry cannot influence the
// content of the file, only whether there is one.
//
// Fetch takes the cheapest way that Held permits: the binary itself, a patch, else the whole. A
// patch that does not lead to the right binary costs only its bytes. After an interruption, a
// Fetch into the same Folder continues the download. Fetch sets no limit of time: ctx does.
func Fetch(ctx context.Context, repository *distribution.Repository, request Request) (Result, error) {
	resolved, err := Resolve(ctx, repository, request)
	if err != nil {
		return Result{}, err
	}
	return resolved.Fetch(ctx)
}

// Resolved is a binary of which the manifest is known.
type Resolved struct {
	Binary Binary
	Digest string // of the manifest

	repository *distribution.Repository
	request    Request
}

// Resolve is the first half of Fetch: it reads the manifest, and returns the requested binary.
func Resolve(ctx context.Context, repository *distribution.Repository, request Request) (Resolved, error) {
	content, digest, err := repository.Manifest(ctx)
	if err != nil {
		return Resolved{}, err
	}
	set, err := Parse(content)
	var binary Binary
	if err == nil {
		binary, err = set.Find(request.Component)
	}
	if err == nil {
		err = request.accepts(binary)
	}
	if err != nil {
		return Resolved{}, fmt.Errorf("read %s: %w", repository.Reference().Name(), err)
	}
	return Resolved{binary, digest, repository, request}, nil
}

// Fetch is the second half of the function Fetch.
func (r Resolved) Fetch(ctx context.Context) (Result, error) {
	f := &fetch{r.repository, r.request, r.Binary, Result{Binary: r.Binary, Digest: r.Digest}}
	err := f.run(ctx)
	return f.result, err
}

func (r Request) accepts(b Binary) error {
	limit := cmp.Or(r.MaxSize, DefaultMaxSize)
	// A layer that is larger than what it contains is not from swdt.
	largest := b.Layer.Size
	for _, p := range b.Patches {
		largest = max(largest, p.Layer.Size)
	}
	switch {
	case r.SHA256 != "" && r.SHA256 != b.SHA256:
		return &HashError{Title: b.Title, Want: r.SHA256, Got: b.SHA256}
	case b.Size > limit:
		return &SizeError{Title: b.Title, Size: b.Size, Limit: limit}
	case largest > b.Size+b.Size/64+64<<10:
		return &ContentError{Title: b.Title, What: "has a layer that is larger than itself"}
	}
	return nil
}

// fetch is one Fetch whose manifest is known.
type fetch struct {
	repository *distribution.Repository
	request    Request
	binary     Binary
	result     Result
}

func (f *fetch) run(ctx context.Context) error {
	f.result.Path = filepath.Join(f.request.Folder, f.binary.SHA256)
	if held, err := f.copyHeld(ctx); held || err != nil {
		f.result.Method = MethodNone
		return err
	}
	patches := slices.SortedFunc(slices.Values(f.binary.Patches),
		func(a, b Patch) int { return cmp.Compare(a.Layer.Size, b.Layer.Size) })
	for _, p := range patches {
		base, ok := f.held(ctx, p.Base)
		if !ok {
			continue
		}
		f.result.Method = MethodPatch
		err := f.layer(ctx, p.Layer, func(layer string, w io.Writer) error { return f.applyPatch(ctx, p, base, layer, w) })
		var wrong *ContentError
		if !errors.As(err, &wrong) {
			return err
		}
	}
	f.result.Method = MethodWhole
	return f.layer(ctx, f.binary.Layer, f.decompress)
}

func (f *fetch) held(ctx context.Context, sha256 string) (string, bool) {
	if f.request.Held == nil {
		return "", false
	}
	return f.request.Held(ctx, sha256)
}

// copyHeld makes the binary of a file that the caller has: one from an earlier Fetch, or one that
// Held returns.
func (f *fetch) copyHeld(ctx context.Context) (bool, error) {
	for _, path := range []func() (string, bool){
		func() (string, bool) { return f.result.Path, true },
		func() (string, bool) { return f.held(ctx, f.binary.SHA256) },
	} {
		from, ok := path()
		if !ok {
			continue
		}
		err := f.write(ctx, func(w io.Writer) error { return copyFile(ctx, from, w, f.binary.Size) })
		var wrong *ContentError
		if !errors.As(err, &wrong) {
			return true, err
		}
	}
	return false, nil
}

// layer downloads a layer and makes the binary of it. It removes the layer afterwards; a layer
// that is not complete stays, to be continued.
func (f *fetch) layer(ctx context.Context, blob distribution.Blob, unpack func(layer string, w io.Writer) error) error {
	path := filepath.Join(f.request.Folder, "layer-"+blob.Digest[len("sha256:"):])
	received, err := f.repository.Download(ctx, blob, path, f.request.Progress)
	f.result.Received += received
	if err != nil {
		return err
	}
	err = f.write(ctx, func(w io.Writer) error { return unpack(path, w) })
	return errors.Join(err, os.Remove(path))
}
