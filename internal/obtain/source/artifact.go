package source

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/obtain/login"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// fetchArtifact gets a binary of a set in a registry into the cache and returns the file's path in
// the cache. If the cache has a file with the wanted hash, fetchArtifact makes no request. If the
// cache has an earlier build that the set has a patch for, only the patch is transferred.
func (s *Set) fetchArtifact(ctx context.Context, artifact distribution.Reference, request Request,
	r ui.Reporter) (string, error) {
	limits, err := s.options.Limits.complete(os.LookupEnv)
	if err != nil {
		return "", err
	}
	if request.MaxSize > 0 {
		limits.Size = request.MaxSize
	}
	c, err := openCache(s.options.Cache)
	if err != nil {
		return "", err
	}
	if blob, ok := c.verifiedBlob(ctx, request.SHA256); ok {
		return blob, nil
	}
	credential := s.options.Credential
	if credential == nil {
		if credential, err = login.Docker(); err != nil {
			return "", err
		}
	}
	place, err := c.slot(ctx, artifact.String()+"#"+request.Component,
		func() { r.Step("waiting for another swdt that downloads %s", artifact) })
	if err != nil {
		return "", err
	}
	defer place.release()
	a := &artifactFetch{
		repository: distribution.Open(artifact, distribution.Options{Credential: credential, HTTP: s.options.HTTP}),
		request:    request, place: place, held: s.held(c), limits: limits, reporter: r,
	}
	return a.run(ctx)
}

// Offer names a local file that should have this SHA-256, hexadecimal. A fetch from a registry may
// begin a patch from the file, which need not stay, nor have this content.
func (s *Set) Offer(sha256, path string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.offered[strings.ToLower(sha256)] = path
}

// held returns a function that finds a file in the cache, or one that was offered.
func (s *Set) held(c cache) func(ctx context.Context, sha256 string) (path string, ok bool) {
	return func(ctx context.Context, sha256 string) (string, bool) {
		if blob, ok := c.verifiedBlob(ctx, sha256); ok {
			return blob, true
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		path, ok := s.offered[sha256]
		return path, ok
	}
}

// artifactFetch is the fetch of one binary into the cache. It holds the lock of its slot.
type artifactFetch struct {
	repository *distribution.Repository
	request    Request
	place      *slot
	held       func(ctx context.Context, sha256 string) (path string, ok bool)
	limits     Limits
	reporter   ui.Reporter
}

func (a *artifactFetch) run(ctx context.Context) (string, error) {
	name := a.repository.Reference().String()
	a.reporter.Step("asking for %s", name)
	ctx, watch := newWatchdog(ctx, a.limits)
	defer watch.stop()
	blob, err := a.fetch(ctx, watch)
	if limit := limitError(ctx); err != nil && limit != nil {
		return "", fmt.Errorf("download %s: %w", name, limit)
	}
	return blob, err
}

// fetch uses what the cache has: the binary itself, or a base for a patch.
func (a *artifactFetch) fetch(ctx context.Context, watch *watchdog) (string, error) {
	// Unfinished files stay in the folder until the next run.
	folder := a.place.base + ".parts"
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("make a folder in the cache: %w", err)
	}
	defer os.Remove(folder) // if it is empty
	bytes := &arriving{watch: watch}
	resolved, err := binaryset.Resolve(ctx, a.repository, binaryset.Request{
		Component: a.request.Component, SHA256: a.request.SHA256, MaxSize: a.mostBytes(), Folder: folder,
		Held: a.held, Progress: bytes.add,
	})
	if err != nil {
		return "", err
	}
	if blob, ok := a.place.cache.verifiedBlob(ctx, resolved.Binary.SHA256); ok {
		return blob, nil
	}
	if err := localfile.Fits(folder, resolved.Binary.Size+resolved.Binary.Layer.Size); err != nil {
		return "", fmt.Errorf("download %s: %w", a.repository.Reference(), err)
	}
	ui.Downloading(a.reporter)
	bytes.progress = a.reporter.Transfer(resolved.Binary.Title, 0)
	defer bytes.progress.End()
	result, err := resolved.Fetch(ctx)
	if err != nil {
		return "", err
	}
	return a.place.cache.blobs.Adopt(ctx, result.Path, result.Binary.SHA256)
}

// mostBytes returns the limit of a binary's size, for which 0 is no limit.
func (a *artifactFetch) mostBytes() int64 {
	if a.limits.Size > 0 {
		return a.limits.Size
	}
	return binaryset.NoLimit
}

// arriving counts the bytes that arrive.
type arriving struct {
	watch    *watchdog
	first    sync.Once
	progress ui.Progress
}

func (a *arriving) add(n int64) {
	a.first.Do(a.watch.begin)
	a.watch.alive(n)
	a.progress.Add(n)
}
