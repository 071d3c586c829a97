// Package source obtains the binaries to push. It turns a path, a file:// URL, an http(s):// URL or
// a set of binaries in an OCI registry (oci://) into a local file whose SHA-256 and kind of
// executable are known. Downloads are resumed, verified and kept in a cache that several runs of swdt share.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/obtain/once"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Request describes a binary to obtain: where to get the binary, and what it must be. Equal
// requests have one result within a Set, so a Request has nothing that differs between the nodes
// that need the binary. push.SourceOf makes the Request for a component of a node file.
type Request struct {
	// URL is a path, or a file://, http(s):// or oci:// URL, as config.Document.Resolve returns
	// it: variables and ~ are expanded.
	URL string
	// Component is the name of the binary in the set that an oci:// URL names. Other URLs have none.
	Component string
	// SHA256 is the hash that the binary must have, hexadecimal; empty: any.
	SHA256 string
	// MaxSize is the maximum size of a download in bytes, in addition to the limits. If MaxSize is
	// 0, only the limits apply.
	MaxSize int64
	// Executable requires a complete Windows program, not a DLL or another kind of
	// file.
	Executable bool
}

// Binary is a local file with the requested content, as it was when it was hashed. transfer.File
// embeds Binary, so no second type describes a component's file on your machine.
type Binary struct {
	Path     string
	Size     int64     // bytes
	Modified time.Time // if the file's time or size differs later, the file has changed
	SHA256   string    // lower-case hexadecimal
	// Machine is the processor that the binary is built for, as GOARCH; empty if the file
	// is not a Windows executable.
	Machine string
}

// Options configure a Set; zero fields have defaults.
type Options struct {
	Cache string       // the cache folder; default: the folder swdt in the user's cache folder
	HTTP  *http.Client // default: proxy from the environment, no overall timeout
	// Limits are the limits of downloads; unset limits are read from the environment.
	Limits Limits
	// Credential returns the login for an OCI registry. Default: that of Docker's configuration.
	Credential auth.CredentialFunc
}

// Set obtains the binaries of a run, each once for any number of nodes. It is safe for
// concurrent use.
type Set struct {
	options Options

	sources once.Map[Request, Binary]

	mutex   sync.Mutex
	hashes  map[fileKey]Binary
	offered map[string]string // paths by SHA-256
}

type fileKey struct {
	path       string
	size       int64
	modified   time.Time
	executable bool
}

// NewSet returns a Set.
func NewSet(options Options) *Set {
	if options.HTTP == nil {
		options.HTTP = newClient()
	}
	s := &Set{options: options, hashes: map[fileKey]Binary{}, offered: map[string]string{}}
	s.sources.Valid = func(b Binary) bool { return b.Unchanged() == nil }
	return s
}

// Obtain is Set.Obtain with a new Set.
func Obtain(ctx context.Context, request Request, r ui.Reporter) (Binary, error) {
	return NewSet(Options{}).Obtain(ctx, request, r)
}

// Obtain returns a binary. For an equal request it returns the earlier result, but it reads a
// local file again if the file has changed since then, and downloads again if the file is no longer in the cache.
func (s *Set) Obtain(ctx context.Context, request Request, r ui.Reporter) (Binary, error) {
	request.SHA256 = strings.ToLower(request.SHA256)
	return s.sources.Do(ctx, request, func() (_ Binary, remote bool, _ error) { return s.obtain(ctx, request, r) })
}

// Ahead starts to read a local file that will be requested later. When the file has been read,
// Ahead passes the binary to the given function. A failure is not reported: the later Obtain
// returns it. Ahead ignores sources that are downloaded.
func (s *Set) Ahead(ctx context.Context, request Request, then func(Binary)) {
	if where, err := locate(request); err != nil || !where.isLocal() {
		return
	}
	go func() {
		if binary, err := s.Obtain(ctx, request, ui.Discard{}); err == nil {
			then(binary)
		}
	}()
}

func (s *Set) obtain(ctx context.Context, request Request, r ui.Reporter) (_ Binary, remote bool, _ error) {
	where, err := locate(request)
	if err != nil {
		return Binary{}, false, err
	}
	path := where.path
	switch {
	case where.isLocal():
	case where.url != nil:
		path, err = s.download(ctx, where.url, request.SHA256, request.MaxSize, r)
	default:
		path, err = s.fetchArtifact(ctx, where.artifact, request, r)
	}
	if err != nil {
		return Binary{}, true, err
	}
	binary, err := s.examine(ctx, path, request, where.name())
	return binary, !where.isLocal(), err
}

// examine reads a local file once, and returns an error if the file does not have the requested
// hash or kind.
func (s *Set) examine(ctx context.Context, path string, request Request, name string) (Binary, error) {
	before, err := regular(path)
	if err != nil {
		return Binary{}, err
	}
	key := fileKey{path, before.Size(), before.ModTime(), request.Executable}
	binary, known := s.cached(key)
	if !known {
		if binary, err = read(ctx, path, before, request.Executable, name); err != nil {
			return Binary{}, err
		}
		s.remember(key, binary)
	}
	if request.SHA256 != "" && binary.SHA256 != request.SHA256 {
		return Binary{}, &HashMismatchError{Name: name, Want: request.SHA256, Got: binary.SHA256}
	}
	return binary, nil
}

func (s *Set) cached(key fileKey) (Binary, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	binary, ok := s.hashes[key]
	return binary, ok
}

func (s *Set) remember(key fileKey, binary Binary) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.hashes[key] = binary
}

// regular returns the FileInfo of a regular file; for any other path it returns an error.
func regular(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	var pathError *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(path, "$"):
		return nil, &FileError{Path: path, What: "does not exist",
			Remedy: "set the variable in it, or correct sourceURL", Err: err}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &FileError{Path: path, What: "does not exist", Remedy: "build it first, or correct sourceURL",
			Err: err}
	case errors.As(err, &pathError):
		return nil, &FileError{Path: path, What: fmt.Sprintf("cannot be looked at (%v)", pathError.Err),
			Remedy: "check the path and its permissions", Err: err}
	case err != nil:
		return nil, fmt.Errorf("look at %s: %w", path, err)
	case info.IsDir():
		return nil, &FileError{Path: path, What: "is a folder", Remedy: "name the file in it as sourceURL"}
	case !info.Mode().IsRegular():
		return nil, &FileError{Path: path, What: fmt.Sprintf("is not a regular file (%s)", info.Mode().Type()),
			Remedy: "correct sourceURL"}
	}
	return info, nil
}

// Look checks that a requested local file exists, without reading it. The error is a
// *FileError, or reports a wrong URL. Look does not check downloads.
func (r Request) Look() error {
	where, err := locate(r)
	if err != nil || !where.isLocal() {
		return err
	}
	_, err = regular(where.path)
	return err
}

func read(ctx context.Context, path string, before fs.FileInfo, executable bool, name string) (Binary, error) {
	file, err := os.Open(path)
	if err != nil {
		return Binary{}, fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, &contextReader{ctx, file}); err != nil {
		return Binary{}, fmt.Errorf("read %s: %w", path, err)
	}
	// Report problems of the program only if the file did not change meanwhile: a file that
	// is not completely written yet is not a bad program.
	after, err := os.Stat(path)
	if err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return Binary{}, &ChangingError{Path: path}
	}
	machine, err := machineOf(file, before.Size(), executable, name)
	if err != nil {
		return Binary{}, err
	}
	return Binary{
		Path: path, Size: before.Size(), Modified: before.ModTime(),
		SHA256: hex.EncodeToString(hash.Sum(nil)), Machine: machine,
	}, nil
}

// For returns an error if a node with this processor (GOARCH) cannot run the binary.
func (b Binary) For(architecture string) error {
	if architecture == "" || b.Machine == "" || b.Machine == architecture {
		return nil
	}
	return &MachineError{Name: filepath.Base(b.Path), Got: b.Machine, Want: architecture}
}

// Unchanged returns an error if the file has changed since it was hashed.
func (b Binary) Unchanged() error {
	info, err := os.Stat(b.Path)
	if err != nil || info.Size() != b.Size || !info.ModTime().Equal(b.Modified) {
		return &ChangingError{Path: b.Path}
	}
	return nil
}

// contextReader ends a long read when ctx ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
