// Package source obtains the binaries that are to be pushed: from a path, a
// file:// or an http(s):// URL, into a local file whose SHA-256 and kind of
// executable are known. Downloads are resumed, verified and kept in a cache
// that several runs of swdt share.
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

	"github.com/swdt-dev/swdt/internal/once"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Request is a wanted binary.
type Request struct {
	// URL is a path, file:// or http(s):// URL, as config.Document.Resolve gives
	// it: variables and ~ are expanded.
	URL string
	// SHA256 that the binary must have, hexadecimal; empty: any.
	SHA256 string
	// MaxSize bounds a download more tightly than the limits do, bytes. 0: they do.
	MaxSize int64
	// Executable demands a whole Windows program, not a DLL or anything else.
	Executable bool
}

// Binary is a local file that holds what was requested.
type Binary struct {
	Path     string
	Size     int64
	Modified time.Time
	SHA256   string // lower-case hexadecimal
	// Machine is the processor it is for, as GOARCH; empty when the file is no
	// Windows executable.
	Machine string
}

// Options say what a Set works with; zero fields have defaults.
type Options struct {
	Cache string       // default: swdt in the user's cache folder
	HTTP  *http.Client // default: proxy from the environment, no overall timeout
	// Limits of downloads; what is not set here is read from the environment.
	Limits Limits
}

// Set obtains binaries for a run, each once however many nodes want it. It is
// safe for concurrent use.
type Set struct {
	options Options

	sources once.Map[Request, Binary]

	mutex  sync.Mutex
	hashes map[fileKey]Binary
}

type fileKey struct {
	path       string
	size       int64
	modified   time.Time
	executable bool
}

// NewSet makes a Set.
func NewSet(options Options) *Set {
	if options.HTTP == nil {
		options.HTTP = newClient()
	}
	return &Set{options: options, hashes: map[fileKey]Binary{}}
}

// Obtain gets one binary for itself.
func Obtain(ctx context.Context, request Request, r ui.Reporter) (Binary, error) {
	return NewSet(Options{}).Obtain(ctx, request, r)
}

// Obtain gets a binary, or what this Set got for the same request before. A
// local file that has changed since is read again.
func (s *Set) Obtain(ctx context.Context, request Request, r ui.Reporter) (Binary, error) {
	request.SHA256 = strings.ToLower(request.SHA256)
	return s.sources.Do(ctx, request, func() (_ Binary, remote bool, _ error) { return s.obtain(ctx, request, r) })
}

// Ahead begins to read a local file that is going to be asked for, and then calls
// then with it. What is wrong with it is told to whoever asks. Anything else is
// left alone.
func (s *Set) Ahead(ctx context.Context, request Request, then func(Binary)) {
	if where, err := locate(request); err != nil || where.url != nil {
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
	if where.url != nil {
		path, err = s.download(ctx, where.url, request.SHA256, request.MaxSize, r)
		if err != nil {
			return Binary{}, true, err
		}
	}
	binary, err := s.examine(ctx, path, request, where.name())
	return binary, where.url != nil, err
}

// examine reads a local file once, and refuses what is not what was asked for.
func (s *Set) examine(ctx context.Context, path string, request Request, name string) (Binary, error) {
	before, err := regular(path)
	if err != nil {
		return Binary{}, err
	}
	key := fileKey{path, before.Size(), before.ModTime(), request.Executable}
	binary, known := s.known(key)
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

func (s *Set) known(key fileKey) (Binary, bool) {
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

// regular is os.Stat for what must be a file.
func regular(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	var pathError *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(path, "$"):
		return nil, &FileError{Path: path, What: "does not exist", Remedy: "set the variable in it, or correct sourceURL", Err: err}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &FileError{Path: path, What: "does not exist", Remedy: "build it first, or correct sourceURL", Err: err}
	case errors.As(err, &pathError):
		return nil, &FileError{Path: path, What: fmt.Sprintf("cannot be looked at (%v)", pathError.Err), Remedy: "check the path and its permissions", Err: err}
	case err != nil:
		return nil, fmt.Errorf("look at %s: %w", path, err)
	case info.IsDir():
		return nil, &FileError{Path: path, What: "is a folder", Remedy: "name the file in it as sourceURL"}
	case !info.Mode().IsRegular():
		return nil, &FileError{Path: path, What: fmt.Sprintf("is not a regular file (%s)", info.Mode().Type()), Remedy: "correct sourceURL"}
	}
	return info, nil
}

// Look checks that a requested local file is there, and does not read it. The error
// is a *FileError, or about the URL itself. A download is not looked at.
func (r Request) Look() error {
	where, err := locate(r)
	if err != nil || where.url != nil {
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
	// The program is judged only once it is known to stand still: half a file is
	// no sign of a bad one.
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

// For checks that the binary runs on a node with this processor (GOARCH).
func (b Binary) For(architecture string) error {
	if architecture == "" || b.Machine == "" || b.Machine == architecture {
		return nil
	}
	return &MachineError{Name: filepath.Base(b.Path), Got: b.Machine, Want: architecture}
}

// Unchanged checks that the file is still the one that was hashed.
func (b Binary) Unchanged() error {
	info, err := os.Stat(b.Path)
	if err != nil || info.Size() != b.Size || !info.ModTime().Equal(b.Modified) {
		return &ChangingError{Path: b.Path}
	}
	return nil
}

// contextReader ends a long read when ctx does.
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
