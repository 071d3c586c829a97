package watch

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tree is the set of source files of a build.
type tree struct {
	folder           string
	wanted, unwanted []pattern
	outputs          []string // files that the build writes, below the folder, with slashes
	last             snapshot
}

// snapshot is the state of the sources at one time. No code changes a snapshot that look has
// returned.
type snapshot struct {
	begun   time.Time
	files   map[string]stamp // by the path below the folder, with slashes
	folders []string
}

// stamp identifies a file's content, to detect changes. sum is set only for files that have changed
// before: it detects a file that was rewritten with the same content.
type stamp struct {
	size     int64
	modified time.Time
	sum      string
}

func newTree(folder string, patterns []string) *tree {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	t := &tree{folder: filepath.Clean(folder)}
	for _, text := range patterns {
		if rest, ok := strings.CutPrefix(text, "!"); ok {
			t.unwanted = append(t.unwanted, newPattern(rest))
		} else {
			t.wanted = append(t.wanted, newPattern(text))
		}
	}
	return t
}

// output records that the build writes this file. Such a file is not a source, even if the patterns
// match it.
func (t *tree) output(path string) {
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	if segments, ok := t.segments(path); ok {
		t.outputs = append(t.outputs, strings.Join(segments, "/"))
	}
}

// concerns reports whether path may be one of the sources, or a folder that contains sources.
func (t *tree) concerns(path string) bool {
	segments, ok := t.segments(path)
	if !ok || len(segments) == 0 {
		return ok
	}
	if t.matches(segments) {
		return true
	}
	if !t.canMatchBelow(segments) {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func (t *tree) segments(path string) ([]string, bool) {
	rel, err := filepath.Rel(t.folder, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return nil, false
	}
	if rel == "." {
		return nil, true
	}
	return strings.Split(filepath.ToSlash(rel), "/"), true
}

func (t *tree) matches(segments []string) bool {
	fits := func(p pattern) bool { return p.matches(segments) }
	return slices.ContainsFunc(t.wanted, fits) && !slices.ContainsFunc(t.unwanted, fits) &&
		!slices.Contains(t.outputs, strings.Join(segments, "/"))
}

func (t *tree) canMatchBelow(folder []string) bool {
	return slices.ContainsFunc(t.wanted, func(p pattern) bool { return p.canMatchBelow(folder) })
}

// look makes a snapshot; before is an earlier snapshot. It omits files that it cannot read, which
// may just have been removed.
func (t *tree) look(ctx context.Context, before snapshot) snapshot {
	now := snapshot{begun: time.Now(), files: map[string]stamp{}}
	_ = filepath.WalkDir(t.folder, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return filepath.SkipAll
		}
		segments, _ := t.segments(path)
		switch {
		case err != nil:
			return nil
		case entry.IsDir() && !t.canMatchBelow(segments):
			return filepath.SkipDir
		case entry.IsDir():
			now.folders = append(now.folders, path)
			return nil
		case !t.matches(segments):
			return nil
		}
		info, err := os.Stat(path) // if path is a link, Stat describes the target
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		name := strings.Join(segments, "/")
		now.files[name] = stampOf(path, info, before.files[name])
		return nil
	})
	return now
}

func stampOf(path string, info fs.FileInfo, before stamp) stamp {
	now := stamp{size: info.Size(), modified: info.ModTime()}
	switch {
	case before.modified.IsZero(): // a new file has changed in any case
	case now.size == before.size && now.modified.Equal(before.modified):
		now.sum = before.sum
	default:
		now.sum = sumOf(path)
	}
	return now
}

// sumOf returns the SHA-256 of the file, or "" if the file cannot be read and therefore
// counts as changed.
func sumOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return ""
	}
	return string(hash.Sum(nil))
}

// update stores a new snapshot as the last one. It returns the paths that changed since the
// previous snapshot, sorted, or nil if there is no previous snapshot. A snapshot that is older than
// the stored one is ignored.
func (t *tree) update(now snapshot) []string {
	before := t.last
	if now.begun.Before(before.begun) {
		return nil // two looks ran at the same time, and this is the older snapshot
	}
	t.last = now
	if before.files == nil {
		return nil
	}
	changed := map[string]bool{}
	for name, stamp := range now.files {
		if old, ok := before.files[name]; !ok || old.differs(stamp) {
			changed[name] = true
		}
	}
	for name := range before.files {
		if _, ok := now.files[name]; !ok {
			changed[name] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

func (s stamp) differs(now stamp) bool {
	if s.size == now.size && s.modified.Equal(now.modified) {
		return false
	}
	return s.sum == "" || s.sum != now.sum
}
