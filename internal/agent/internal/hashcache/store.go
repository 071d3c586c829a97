package hashcache

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	// maxEntries limits the number of entries: a node has a handful of
	// components.
	maxEntries = 256
	maxStored  = 1 << 20 // bytes of the cache file
)

// stored is the cache file: entries from the least to the most recently used.
type stored struct {
	Entries []storedEntry `json:"entries"`
}

type storedEntry struct {
	Path     string    `json:"path"`
	Volume   uint64    `json:"volume"`
	Index    uint64    `json:"index"`
	High     uint64    `json:"high,omitempty"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	SHA256   string    `json:"sha256"`
	Version  string    `json:"version,omitempty"`
}

// Load reads layout.HashCache. If the file is missing, damaged or unreadable,
// the cache begins empty.
func Load(files platform.Files) *Cache {
	c := &Cache{files: files, now: time.Now, entries: map[platform.FileID]entry{}}
	file, err := files.Open(layout.HashCache)
	if err != nil {
		return c
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxStored+1))
	if err != nil || len(data) > maxStored {
		return c
	}
	var s stored
	if json.Unmarshal(data, &s) != nil {
		return c
	}
	for _, e := range s.Entries {
		if !e.valid() {
			continue
		}
		c.used++
		c.entries[platform.FileID{Volume: e.Volume, Index: e.Index, High: e.High}] = entry{
			path: e.Path, size: e.Size, modified: e.Modified, sha: e.SHA256, version: e.Version, used: c.used,
		}
	}
	return c
}

// Refresh adds what another process has saved since Load: files that the cache does not have, and versions.
func (c *Cache) Refresh() {
	saved := Load(c.files)
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, e := range saved.entries {
		own, known := c.entries[id]
		if !known || own.version == "" && own.sha == e.sha {
			e.used = max(own.used, e.used)
			c.entries[id] = e
		}
	}
}

func (e storedEntry) valid() bool {
	sum, err := hex.DecodeString(e.SHA256)
	return err == nil && len(sum) == 32 && e.Size >= 0 && e.Path != ""
}

// Save writes the cache to layout.HashCache if the cache has changed. It leaves out files that no
// longer exist, and the least recently used entries beyond the limit. A renamed file counts as
// missing until it has been hashed under its new name. The folder of layout.HashCache must exist.
func (c *Cache) Save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dirty {
		return nil
	}
	c.prune()
	data, err := json.Marshal(c.stored())
	if err != nil {
		return fmt.Errorf("save the hash cache: %w", err)
	}
	if err := replace(c.files, layout.HashCache, data); err != nil {
		return fmt.Errorf("save the hash cache: %w", err)
	}
	c.dirty = false
	return nil
}

// prune removes entries of files that are no longer at their last known path,
// then the least recently used entries beyond maxEntries.
func (c *Cache) prune() {
	for id, e := range c.entries {
		if info, err := c.files.Stat(e.path); err != nil || info.ID != id {
			delete(c.entries, id)
		}
	}
	order := c.byUse()
	for _, id := range order[:max(0, len(order)-maxEntries)] {
		delete(c.entries, id)
	}
}

func (c *Cache) byUse() []platform.FileID {
	ids := make([]platform.FileID, 0, len(c.entries))
	for id := range c.entries {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { // slices.SortFunc would add 12 KB to the agent for each type
		return c.entries[ids[i]].used < c.entries[ids[j]].used
	})
	return ids
}

func (c *Cache) stored() stored {
	s := stored{Entries: []storedEntry{}}
	for _, id := range c.byUse() {
		e := c.entries[id]
		s.Entries = append(s.Entries, storedEntry{
			Path: e.path, Volume: id.Volume, Index: id.Index, High: id.High, Size: e.size, Modified: e.modified, SHA256: e.sha,
			Version: e.version,
		})
	}
	return s
}

// replace writes a temporary file next to path and renames it to path.
func replace(files platform.Files, path string, data []byte) (err error) {
	temporary := path + ".new"
	file, err := files.Create(temporary, platform.CreateTruncate)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = files.Rename(temporary, path, true)
	}
	if err != nil {
		return errors.Join(err, files.Remove(temporary))
	}
	return nil
}
