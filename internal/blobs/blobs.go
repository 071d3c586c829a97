// Package blobs is the host's store of files by their SHA-256: what was
// downloaded, and every binary that was pushed. What a node has is then, most of
// the time, also here, and only the difference to it needs to be sent.
//
//	<folder>/<sha256>        a file, written under another name first
//	<folder>/<sha256>.used   empty; its time is when the file was last of use
//	<folder>/.lock           held by the one that removes files
//
// Several runs of swdt share a folder. Files appear by renaming, so that nobody
// sees half of one; their content is judged by its hash whenever it is used, so
// that a disk's fault or somebody's hand costs a little time and nothing else.
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
	// DefaultLimit is how many bytes are kept: some fifty builds of a kubelet.
	DefaultLimit = 4 << 30
	// grace is how long a file stays after it was of use, whatever the limit:
	// another swdt may have been given its path a moment ago.
	grace = 10 * time.Minute
)

// Store is a folder of files by their SHA-256. It is safe for concurrent use.
type Store struct {
	folder string
	limit  int64
	now    func() time.Time
}

// Open opens the store in a folder, which is made where it is missing. limit is
// in bytes; 0: DefaultLimit.
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

// ErrNotHeld says that the store does not have a file, or no longer has it whole.
var ErrNotHeld = errors.New("not in the cache")

// Folder is where the store is. Beside its files, whoever works with them may keep
// what is no hash of anything.
func (s *Store) Folder() string { return s.folder }

func (s *Store) path(hash string) string { return filepath.Join(s.folder, hash) }

// IsSHA256 reports whether text is a SHA-256 in lower-case hexadecimal, and so safe
// as part of a file's name.
func IsSHA256(text string) bool { return valid(text) }

func valid(hash string) bool {
	sum, err := hex.DecodeString(hash)
	return err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == hash
}

// Has is whether there is a file of this hash. Its content may turn out damaged.
func (s *Store) Has(hash string) bool {
	if !valid(hash) {
		return false
	}
	info, err := os.Stat(s.path(hash))
	return err == nil && info.Mode().IsRegular()
}

// Path is where the file with this hash is, whose content was just verified; else
// the error is ErrNotHeld.
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
		s.Reject(hash)
		return "", ErrNotHeld
	}
	s.touch(hash)
	return s.path(hash), nil
}

// Content is a file's bytes, until Close.
type Content struct {
	Bytes   []byte
	release func()
}

// Close gives the memory back.
func (c Content) Close() {
	if c.release != nil {
		c.release()
	}
}

// Read is the content of the file with this hash, for a reader that finds out
// anyway whether it is what it should be, and tells Reject where it is not.
// ErrNotHeld where there is none. Files of the store appear and disappear whole,
// so that the content may be, and where that is possible is, the file itself,
// which must not be cut while somebody reads it.
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

// MapFile is the content of any file that nobody cuts meanwhile.
func MapFile(path string) (Content, error) { return mapFile(path) }

func readFile(path string) (Content, error) {
	bytes, err := os.ReadFile(path)
	return Content{Bytes: bytes}, err
}

// Reject removes a file whose content is not what its name says.
func (s *Store) Reject(hash string) {
	if !valid(hash) {
		return
	}
	// Where it cannot be removed it is found out again.
	_ = os.Remove(s.path(hash))
	_ = os.Remove(s.stamp(hash))
}

// Put keeps a copy of the file at path, which has this hash. A copy and not a
// link: linkers write to the same file again. Where the file system can share
// the blocks of a copy, it does.
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

// copy copies a file into the folder, and hashes nothing: what is wrong with it
// shows when it is used.
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
	_, err = io.Copy(to, from) // on Linux without going through this process
	err = errors.Join(err, to.Close(), context.Cause(ctx))
	if err != nil {
		_ = os.Remove(to.Name())
		return "", err
	}
	return to.Name(), nil
}

// Adopt makes the file at path, on the same volume, the one of this hash, which
// it was found to have. It returns the file's new path.
func (s *Store) Adopt(ctx context.Context, path, hash string) (string, error) {
	if !valid(hash) {
		return "", fmt.Errorf("keep %s: %q is no SHA-256", path, hash)
	}
	blob := s.path(hash)
	if err := os.Rename(path, blob); err != nil {
		// On Windows a file that another swdt is reading cannot be replaced; it
		// is the same file.
		if !s.Has(hash) {
			return "", fmt.Errorf("keep a file in the cache: %w", err)
		}
		_ = os.Remove(path)
	}
	s.touch(hash)
	_ = s.evict(ctx) // until the next time, more is kept than should be
	return blob, nil
}

func (s *Store) stamp(hash string) string { return s.path(hash) + stampEnding }

// touch notes that a file was of use. Its own time is not changed: whoever was
// given its path goes by it.
func (s *Store) touch(hash string) {
	now := s.now()
	if os.Chtimes(s.stamp(hash), now, now) == nil {
		return
	}
	// Without a stamp the file counts as last used when it was written.
	_ = os.WriteFile(s.stamp(hash), nil, 0o600)
	_ = os.Chtimes(s.stamp(hash), now, now)
}
