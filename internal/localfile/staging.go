package localfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// stagingLock is held by the process that owns a staging folder. It distinguishes a
// folder in use from one whose process was killed, which its age does not.
const stagingLock = ".swdt-lock"

// unlocked is how old a staging folder without a lock must be before it is removed: a
// process makes the folder a moment before the lock.
const unlocked = 24 * time.Hour

// Staging is a folder for unfinished files, which only its owner can access.
type Staging struct {
	Path string
	lock *flock.Flock
}

// Stage makes a folder PREFIX-RANDOM in folder. It first removes the folders with this
// prefix whose processes have ended without removing them.
func Stage(folder, prefix string) (*Staging, error) {
	tidy(folder, prefix, time.Now())
	path, err := os.MkdirTemp(folder, prefix+"-")
	if err != nil {
		return nil, err
	}
	s := &Staging{Path: path, lock: flock.New(filepath.Join(path, stagingLock))}
	mine, err := s.lock.TryLock()
	if err == nil && !mine {
		err = errors.New("another process holds its lock")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), os.RemoveAll(path))
	}
	return s, nil
}

// Remove removes the folder with everything in it.
func (s *Staging) Remove() error {
	err := s.lock.Unlock() // first, since Windows removes no open file
	if gone := os.RemoveAll(s.Path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// Keep renames the folder, so that nothing removes it.
func (s *Staging) Keep(path string) error {
	return errors.Join(s.lock.Unlock(), os.Remove(filepath.Join(s.Path, stagingLock)), os.Rename(s.Path, path))
}

// tidy removes staging folders of processes that have ended. A folder that it cannot
// remove belongs to another user, or is left for the next time.
func tidy(folder, prefix string, now time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		random, ok := strings.CutPrefix(entry.Name(), prefix+"-")
		info, err := entry.Info()
		if !ok || !digits(random) || err != nil || !info.IsDir() {
			continue
		}
		if path := filepath.Join(folder, entry.Name()); abandoned(path, now.Sub(info.ModTime())) {
			_ = os.RemoveAll(path)
		}
	}
}

// abandoned reports whether no process holds the folder's lock.
func abandoned(path string, age time.Duration) bool {
	name := filepath.Join(path, stagingLock)
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return age > unlocked
	}
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	lock := flock.New(name)
	free, err := lock.TryLock()
	if err != nil || !free {
		return false
	}
	return lock.Unlock() == nil
}

// digits reports whether text can be the random part of a name by os.MkdirTemp.
func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
