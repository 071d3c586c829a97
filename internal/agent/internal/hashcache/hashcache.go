// Package hashcache caches the SHA-256 of files on a node, so that checking "is kubelet.exe the one that I built?"
// does not read 80 MB each time. An entry is valid while the file's id, size and time of change are unchanged; it
// stays valid after a rename. The cache is only an optimisation: a damaged cache file counts as an empty cache.
// Files that an ordinary user may change are not cached, since that user could change the contents and then restore
// size and time.
//
// The cache is held in memory and written only by Save, since a session that changes nothing on a
// node writes nothing there.
package hashcache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	chunk = 1 << 20
	// settled is how old a change must be before its time is reliable: a second change within one tick of Windows's
	// clock (16 ms) has the same time.
	settled = 50 * time.Millisecond
	// tick is the unit of a file's times on Windows.
	tick = 100 * time.Nanosecond
)

// Cache returns hashes of files. It is safe for concurrent use.
type Cache struct {
	files platform.Files
	now   func() time.Time

	mu      sync.Mutex
	entries map[platform.FileID]entry
	used    uint64 // counts uses, to find the entry that was least recently used
	dirty   bool
}

type entry struct {
	path     string // the last known path
	size     int64
	modified time.Time
	sha      string
	version  string // "": not known
	used     uint64
}

// Hash returns the SHA-256 of a file as lower-case hex, and its size.
func (c *Cache) Hash(ctx context.Context, path string) (sha string, size int64, err error) {
	info, err := c.stat(path)
	if err != nil {
		return "", 0, err
	}
	if c.onlyAdministratorsChange(path) {
		if sha, ok := c.lookup(path, info); ok {
			return sha, info.Size, nil
		}
	}
	return c.compute(ctx, path, info)
}

// Learn stores a hash that the caller computed while it wrote the file. No other process could
// write the file before the caller closed it. The parameter `modified` is the file's time of change
// when the caller closed the file. Learn stores the hash if the file's present size and time agree
// with the parameters `size` and `modified`, if only administrators may change the file, and if the
// change is old enough (see settled). If not, Learn removes the file's entry.
func (c *Cache) Learn(path, sha string, size int64, modified time.Time) {
	info, err := c.stat(path)
	if err != nil {
		return // Hash cannot look up a file without this information either
	}
	ours := c.onlyAdministratorsChange(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	same := ours && info.Size == size && info.Modified.Equal(modified.Truncate(tick)) && !info.Link
	if !same || c.now().Sub(info.Modified) < settled {
		delete(c.entries, info.ID)
		return
	}
	c.note(info, entry{path: path, size: size, modified: info.Modified, sha: sha})
}

// Version returns what a file reports if it is run with --version, if LearnVersion was called for its present contents.
func (c *Cache) Version(path string) (version string, ok bool) {
	info, err := c.stat(path)
	if err != nil || !c.onlyAdministratorsChange(path) {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.valid(info)
	return e.version, ok && e.version != ""
}

// LearnVersion stores what a file reports if it is run with --version. It stores nothing for a file whose hash the
// cache does not have.
func (c *Cache) LearnVersion(path, version string) {
	info, err := c.stat(path)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.valid(info); ok && version != "" {
		e.version = version
		c.entries[info.ID], c.dirty = e, true
	}
}

// valid returns the entry of a file, unless the file has changed since; the caller holds the lock.
func (c *Cache) valid(info platform.FileInfo) (entry, bool) {
	e, ok := c.entries[info.ID]
	return e, ok && !info.Link && e.size == info.Size && e.modified.Equal(info.Modified)
}

// note stores an entry; the caller holds the lock.
func (c *Cache) note(info platform.FileInfo, e entry) {
	c.used++
	e.used = c.used
	c.entries[info.ID] = e
	c.dirty = true
}

func (c *Cache) stat(path string) (platform.FileInfo, error) {
	info, err := c.files.Stat(path)
	if err != nil {
		return info, fmt.Errorf("hash %s: %w", path, err)
	}
	if info.Folder {
		return info, fmt.Errorf("hash %s: %w", path, fault.ErrIsDirectory)
	}
	return info, nil
}

// onlyAdministratorsChange reports whether only administrators and the machine itself (see
// access.Trusted) may change a file. It returns true if the machine keeps no access lists.
func (c *Cache) onlyAdministratorsChange(path string) bool {
	if !c.files.KeepsACL() {
		return true
	}
	sddl, err := c.files.ACL(path)
	if err != nil {
		return false
	}
	list, err := access.Parse(sddl)
	return err == nil && len(list.Changers()) == 0
}

func (c *Cache) lookup(path string, info platform.FileInfo) (sha string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.valid(info)
	if !ok {
		return "", false
	}
	c.used++
	c.dirty = c.dirty || e.path != path
	e.used, e.path = c.used, path
	c.entries[info.ID] = e
	return e.sha, true
}

// compute reads the file. It caches the hash if the file did not change while it was read, if only
// administrators may change the file, and if the file's last change is old enough (see settled).
func (c *Cache) compute(ctx context.Context, path string, before platform.FileInfo) (string, int64, error) {
	begun := c.now()
	sha, size, err := c.read(ctx, path)
	if err != nil {
		return "", 0, fmt.Errorf("hash %s: %w", path, err)
	}
	after, err := c.files.Stat(path)
	if err != nil {
		return "", 0, fmt.Errorf("hash %s: %w", path, err)
	}
	steady := after.ID == before.ID && after.Size == size && before.Size == size &&
		after.Modified.Equal(before.Modified) && !after.Link && c.onlyAdministratorsChange(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !steady || begun.Sub(after.Modified) < settled {
		delete(c.entries, after.ID)
		return sha, size, nil
	}
	c.note(after, entry{path: path, size: size, modified: after.Modified, sha: sha})
	return sha, size, nil
}

func (c *Cache) read(ctx context.Context, path string) (sha string, size int64, err error) {
	file, err := patience.Patience{Files: c.files, Limit: patience.Short}.Open(ctx, path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	sum := sha256.New()
	buffer := make([]byte, chunk)
	for {
		if err := ctx.Err(); err != nil {
			return "", 0, err
		}
		n, err := file.Read(buffer)
		sum.Write(buffer[:n])
		size += int64(n)
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), size, nil
		}
		if err != nil {
			return "", 0, err
		}
	}
}
