// Package blobs is your machine's store of files by their SHA-256. It keeps downloads and the
// binaries that were pushed, up to a limit of size. So the store usually has the file that is on a
// node, and a push only has to send the difference between that file and the new one.
//
//	<folder>/<sha256>        a file, written under another name first
//	<folder>/<sha256>.used   empty; its time is when the file was last used
//	<folder>/.lock           held by the swdt that removes files
//
// Several runs of swdt share a folder. Files appear by renaming, so that a reader never
// finds half a file. Path verifies the content of a file against its hash, and a caller of Read
// must detect a wrong content by itself. So a disk error or a manual change only costs another
// download or a larger transfer.
package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

const (
	// DefaultLimit is how many bytes are kept, enough for about fifty builds of a kubelet.
	DefaultLimit = 4 << 30
	// grace is how long a file stays after its last use, even if the store exceeds its limit:
	// another swdt may have obtained the file's path a moment ago.
	grace = 10 * time.Minute
)

// Store is a folder of files by their SHA-256. It is safe for concurrent use.
type Store struct {
	folder string
	limit  int64
	now    func() time.Time
}

// Open opens the store in a folder, and makes the folder if it is missing. limit is in bytes; 0
// means DefaultLimit.
func Open(folder string, limit int64) (*Store, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	return &Store{folder: folder, limit: limit, now: time.Now}, nil
}

// OpenDefault opens the store in the user's cache folder.
func OpenDefault() (*Store, error) {
	user, err := localfile.CacheFolder()
	if err != nil {
		return nil, fmt.Errorf("find the cache folder: %w: set XDG_CACHE_HOME (LocalAppData on Windows)", err)
	}
	return Open(filepath.Join(user, "swdt", "blobs"), 0)
}

// ErrNotHeld means that the store does not have a file, or that the store's copy is damaged.
var ErrNotHeld = errors.New("not in the cache")

// Folder returns the store's folder. Callers may keep their own files in it, under names that
// are not hashes.
func (s *Store) Folder() string { return s.folder }

func (s *Store) path(hash string) string { return filepath.Join(s.folder, hash) }

// IsSHA256 reports whether text is a SHA-256 in lower-case hexadecimal. Such a text is safe as
// part of a file's name.
func IsSHA256(text string) bool { return valid(text) }

func valid(hash string) bool {
	sum, err := hex.DecodeString(hash)
	return err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == hash
}

// Has reports whether the store has a file of this hash. It does not verify the content.
func (s *Store) Has(hash string) bool {
	if !valid(hash) {
		return false
	}
	info, err := os.Stat(s.path(hash))
	return err == nil && info.Mode().IsRegular()
}

// Path returns the path of the file with this hash, after verifying its content. If there is no
// such file, or if it is damaged, the error is ErrNotHeld.
func (s *Store) Path(ctx context.Context, hash string) (string, error) {
	if !s.Has(hash) {
		return "", ErrNotHeld
	}
	got, err := localfile.Hash(ctx, s.path(hash))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNotHeld, err)
	case got != hash:
		s.RemoveDamaged(hash)
		return "", ErrNotHeld
	}
	s.touch(hash)
	return s.path(hash), nil
}

// Content holds a file's bytes until Close.
type Content struct {
	Bytes   []byte
	release func()
}

// Close releases the memory.
func (c Content) Close() {
	if c.release != nil {
		c.release()
	}
}

// Read returns the content of the file with this hash, unverified. The caller must detect a
// wrong content by itself, and then call RemoveDamaged. If there is no such file, the error is
// ErrNotHeld. The content is mapped from the file if the system supports that, which is safe
// because the store only renames and removes whole files. No process may truncate the file
// meanwhile.
func (s *Store) Read(hash string) (Content, error) {
	if !valid(hash) {
		return Content{}, ErrNotHeld
	}
	content, err := mapFile(s.path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, ErrNotHeld
	}
	if err != nil {
		return Content{}, fmt.Errorf("%w: %w", ErrNotHeld, err)
	}
	s.touch(hash)
	return content, nil
}

// MapFile returns the content of a file outside the store. No process may truncate the file
// before Close.
func MapFile(path string) (Content, error) { return mapFile(path) }

func readFile(path string) (Content, error) {
	bytes, err := os.ReadFile(path)
	return Content{Bytes: bytes}, err
}

// RemoveDamaged removes a file whose content does not match the hash in the file's name.
func (s *Store) RemoveDamaged(hash string) {
	if !valid(hash) {
		return
	}
	// If the file cannot be removed, its next use detects the damage again.
	_ = os.Remove(s.path(hash))
	_ = os.Remove(s.stamp(hash))
}

// Put keeps a copy of the file at path, which has this hash. It does not keep a hard link, since
// the next build may write to the file at path. The copy shares its blocks with that file if the
// file system supports sharing.
func (s *Store) Put(ctx context.Context, path, hash string) error {
	if !valid(hash) {
		return fmt.Errorf("keep %s: %q is no SHA-256", path, hash)
	}
	if s.Has(hash) {
		s.touch(hash)
		return nil
	}
	temporary, err := s.copy(ctx, path, hash)
	if err != nil {
		return fmt.Errorf("keep a copy of %s: %w", path, err)
	}
	if _, err = s.Adopt(ctx, temporary, hash); err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

// copy copies a file into the folder without hashing it. A wrong content is detected when the
// file is used.
func (s *Store) copy(ctx context.Context, path, hash string) (temporary string, err error) {
	from, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer from.Close()
	to, err := os.CreateTemp(s.folder, hash[:12]+"-*"+temporaryEnding)
	if err != nil {
		return "", err
	}
	// on Linux, the kernel copies the bytes, which do not pass through this process
	_, err = io.Copy(to, from)
	err = errors.Join(err, to.Close(), context.Cause(ctx))
	if err != nil {
		_ = os.Remove(to.Name())
		return "", err
	}
	return to.Name(), nil
}

// Adopt moves the file at path into the store, and returns its new path. The file must be on
// the same volume. Adopt does not verify that the content has this hash.
func (s *Store) Adopt(ctx context.Context, path, hash string) (string, error) {
	if !valid(hash) {
		return "", fmt.Errorf("keep %s: %q is no SHA-256", path, hash)
	}
	blob := s.path(hash)
	if err := os.Rename(path, blob); err != nil {
		// On Windows a file that another swdt is reading cannot be replaced. If the store has
		// the file already, that is the same file.
		if !s.Has(hash) {
			return "", fmt.Errorf("keep a file in the cache: %w", err)
		}
		_ = os.Remove(path)
	}
	s.touch(hash)
	_ = s.evict(ctx) // if this fails, the store exceeds its limit until the next eviction
	return blob, nil
}

func (s *Store) stamp(hash string) string { return s.path(hash) + stampEnding }

// touch records the use of a file. It does not change the file's own time: callers that have
// the file's path may compare that time.
func (s *Store) touch(hash string) {
	now := s.now()
	if os.Chtimes(s.stamp(hash), now, now) == nil {
		return
	}
	// The file has no stamp yet. A file without a stamp counts as last used when it was written.
	_ = os.WriteFile(s.stamp(hash), nil, 0o600)
	_ = os.Chtimes(s.stamp(hash), now, now)
}
