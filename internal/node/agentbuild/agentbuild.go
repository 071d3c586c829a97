// Package agentbuild builds the programs that swdt brings to nodes and into pods, with the user's Go, for
// a swdt that does not have them inside: one that `go install` or a plain `go build` made. It builds them
// from the source of this very swdt or not at all, and keeps them in the user's cache.
//
//   - agentbuild.go: the programs, and the cache of builds
//   - source.go: the source of this swdt
//   - golang.go: Go's command, in an environment of its own
package agentbuild

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Program is a program of swdt's module, for a system and a processor as Go names them.
type Program struct {
	Name, System, Processor string
	flags                   []string
}

// Agent returns swdt-agent for nodes.
func Agent() Program { return Program{"swdt-agent", "windows", "amd64", small()} }

// Probe returns swdt-probe for pods on a system.
func Probe(system, processor string) Program {
	p := Program{"swdt-probe", system, processor, []string{"-trimpath", "-buildvcs=false", "-ldflags", "-s -w"}}
	if system == "windows" {
		p.flags = small()
	}
	return p
}

// small returns the Makefile's AGENT_FLAGS.
func small() []string {
	return []string{"-tags", "grpcnotrace", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -funcalign=8",
		"-gcflags=all=-l", "-gcflags=github.com/klauspost/compress/...="}
}

func (p Program) String() string { return p.Name + " for " + p.System + "/" + p.Processor }

// Builder builds programs of swdt. Its zero value builds those of this swdt. It is safe for concurrent use.
type Builder struct {
	// Info describes the swdt whose programs are built; nil: what Go has recorded in this one.
	Info *debug.BuildInfo
	// Checkout is the folder of swdt's source when that swdt was compiled; "": that of this swdt, if Go has
	// recorded it.
	Checkout string
	// Environ is the environment for Go, as in os.Environ; nil: that of this process.
	Environ []string
	// Cache is the folder of finished programs; "": the user's store of files.
	Cache string

	building sync.Mutex
}

// ErrNotBuilt means that the cache has no such program.
var ErrNotBuilt = errors.New("not built yet")

// Build returns a program, as an executable whose Hash, Size and Open are those of an agent. It builds the
// program if the cache does not have it, which takes a minute or two, and reports that to r. The error is a
// *NoSourceError, a *NoGoError, an *OtherSourceError or a *GoError.
func (b *Builder) Build(ctx context.Context, p Program, r ui.Reporter) (agentbin.Agent, error) {
	b.building.Lock()
	defer b.building.Unlock()
	built, err := b.Built(ctx, p)
	if !errors.Is(err, ErrNotBuilt) {
		return built, err
	}
	s, err := b.source()
	if err != nil {
		return built, err
	}
	store, err := b.store()
	if err != nil {
		return built, err
	}
	r.Info("building %s from the source of this swdt (%s) with Go: this swdt has none inside; the next time it is in %s",
		p, s.name(), store.Folder())
	staging, err := localfile.Stage(store.Folder(), "build")
	if err != nil {
		return built, fmt.Errorf("build %s: %w", p, err)
	}
	defer staging.Remove()
	file, err := b.compile(ctx, p, s, staging.Path)
	if err != nil {
		return built, fmt.Errorf("build %s: %w", p, err)
	}
	return b.keep(ctx, store, s.key(p), file)
}

// Built returns a program that the cache has, or ErrNotBuilt. It runs no other program.
func (b *Builder) Built(ctx context.Context, p Program) (agentbin.Agent, error) {
	s, err := b.source()
	if err != nil {
		return agentbin.Agent{}, err
	}
	store, err := b.store()
	if err != nil {
		return agentbin.Agent{}, err
	}
	hash, err := os.ReadFile(index(store, s.key(p)))
	if err != nil {
		return agentbin.Agent{}, ErrNotBuilt
	}
	path, err := store.Path(ctx, string(hash)) // compares the content with the hash
	if errors.Is(err, blobs.ErrNotHeld) {
		return agentbin.Agent{}, ErrNotBuilt
	}
	if err != nil {
		return agentbin.Agent{}, err
	}
	return executable(path, string(hash))
}

func (b *Builder) store() (*blobs.Store, error) {
	if b.Cache != "" {
		return blobs.Open(b.Cache, 0)
	}
	return blobs.OpenDefault()
}

// index returns the file that has the hash of a program.
func index(store *blobs.Store, key string) string { return filepath.Join(store.Folder(), "built-"+key) }

// keep moves a program into the store.
func (b *Builder) keep(ctx context.Context, store *blobs.Store, key, file string) (agentbin.Agent, error) {
	if err := os.Chmod(file, 0o600); err != nil {
		return agentbin.Agent{}, fmt.Errorf("keep %s: %w", file, err)
	}
	hash, err := localfile.Hash(ctx, file)
	if err != nil {
		return agentbin.Agent{}, err
	}
	path, err := store.Adopt(ctx, file, hash)
	if err != nil {
		return agentbin.Agent{}, err
	}
	if err := localfile.Replace(index(store, key), []byte(hash)); err != nil {
		return agentbin.Agent{}, fmt.Errorf("keep the hash of a build: %w", err)
	}
	return executable(path, hash)
}

func executable(path, hash string) (agentbin.Agent, error) {
	info, err := os.Stat(path)
	if err != nil {
		return agentbin.Agent{}, fmt.Errorf("read a program in the cache: %w", err)
	}
	return agentbin.Agent{Hash: hash, Size: info.Size(),
		Open: func() (io.ReadCloser, error) { return os.Open(path) }}, nil
}

// key names a program of a source, for the cache.
func (s source) key(p Program) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{s.version, s.sum, s.revision, s.compiler, p.String()},
		p.flags...), "\x00")))
	return hex.EncodeToString(sum[:])
}
