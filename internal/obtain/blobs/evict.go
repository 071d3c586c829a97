package blobs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

const (
	stampEnding     = ".used"
	temporaryEnding = ".new"
	// abandoned is the age from which a temporary file counts as left by a process that
	// has ended.
	abandoned = 24 * time.Hour
)

// held is one file of the store.
type held struct {
	hash string
	size int64
	used time.Time
}

// evict removes the least recently used files until the rest is within the limit. It never
// removes a file that was used within grace.
func (s *Store) evict(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if _, total, err := s.list(); err != nil || total <= s.limit {
		return err
	}
	// Only one swdt evicts at a time: two would remove twice the excess. Each run holds the lock
	// only briefly.
	unlock, err := lockedfile.MutexAt(filepath.Join(s.folder, ".lock")).Lock()
	if err != nil {
		return fmt.Errorf("lock the cache: %w", err)
	}
	defer unlock()
	all, total, err := s.list()
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b held) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.hash, b.hash)) })
	for _, oldest := range all {
		if total <= s.limit || s.now().Sub(oldest.used) < grace {
			return nil
		}
		if os.Remove(s.path(oldest.hash)) != nil {
			continue // on Windows the file cannot be removed while it is being read
		}
		_ = os.Remove(s.stamp(oldest.hash))
		total -= oldest.size
	}
	return nil
}

// list returns the files of the store. It also removes temporary files that a killed swdt
// left.
func (s *Store) list() (all []held, total int64, err error) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return nil, 0, fmt.Errorf("look at the cache: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // the file was removed a moment ago, or does not belong to the store
		}
		if strings.HasSuffix(entry.Name(), temporaryEnding) && s.now().Sub(info.ModTime()) > abandoned {
			_ = os.Remove(s.path(entry.Name()))
			continue
		}
		if !valid(entry.Name()) {
			continue
		}
		one := held{hash: entry.Name(), size: info.Size(), used: info.ModTime()}
		if stamp, err := os.Stat(s.stamp(one.hash)); err == nil {
			one.used = stamp.ModTime()
		}
		all, total = append(all, one), total+one.size
	}
	return all, total, nil
}
