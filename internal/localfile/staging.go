package localfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stagingLock is the end of the name of the lock file beside a staging folder. The process that
// makes the folder takes the lock before, and releases it after it has removed or renamed the
// folder. So a folder whose lock is free was left behind: its process was killed, or could not
// remove it. The lock is not inside the folder, since Windows does not rename a folder in which a
// file is open.
const stagingLock = ".swdt-lock"

const (
	// unlocked is how old a staging folder without a lock must be before it is removed: a
	// lock is missing only if a user or another program removed it.
	unlocked = 24 * time.Hour
	// stageTries bounds the search for a free name.
	stageTries = 100
)

// Staging is a folder for unfinished files, which only its owner can access.
type Staging struct {
	Path string
	lock *os.File // nil: the folder is removed or kept
}

// Stage makes a folder PREFIX-RANDOM in folder. It first removes the folders with this
// prefix whose processes have ended without removing them.
func Stage(folder, prefix string) (*Staging, error) {
	tidy(folder, prefix, time.Now())
	for range stageTries {
		path := filepath.Join(folder, prefix+"-"+strconv.FormatUint(uint64(rand.Uint32()), 10))
		s, err := stageAt(path)
		if errors.Is(err, ErrClaimed) || errors.Is(err, fs.ErrExist) {
			continue // another process has this name
		}
		return s, err
	}
	return nil, fmt.Errorf("make a folder %s: %d random names are taken; remove those that no program uses",
		filepath.Join(folder, prefix+"-*"), stageTries)
}

func stageAt(path string) (*Staging, error) {
	lock, err := Claim(path + stagingLock)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		if !errors.Is(err, fs.ErrExist) { // else it is the lock of that folder
			_ = os.Remove(path + stagingLock)
		}
		lock.Close()
		return nil, err
	}
	return &Staging{Path: path, lock: lock}, nil
}

// Remove removes the folder with everything in it. It does nothing if the folder was kept
// or removed before.
func (s *Staging) Remove() error {
	if s.lock == nil {
		return nil
	}
	defer s.unlock()
	if err := os.RemoveAll(s.Path); err != nil {
		return err // the lock's file stays, so that the next Stage tries again
	}
	if err := os.Remove(s.Path + stagingLock); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Keep renames the folder, so that nothing removes it. If it fails, the folder is still a
// staging folder.
func (s *Staging) Keep(path string) error {
	if err := os.Rename(s.Path, path); err != nil {
		return err
	}
	_ = os.Remove(s.Path + stagingLock) // else the next Stage removes it
	s.unlock()
	return nil
}

func (s *Staging) unlock() {
	s.lock.Close()
	s.lock = nil
}

// tidy removes staging folders and locks of processes that have ended. A folder that it
// cannot remove belongs to another user, or is left for the next time.
func tidy(folder, prefix string, now time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		name, isLock := strings.CutSuffix(entry.Name(), stagingLock)
		random, ok := strings.CutPrefix(name, prefix+"-")
		info, err := entry.Info()
		if !ok || !digits(random) || err != nil {
			continue
		}
		path := filepath.Join(folder, name)
		switch {
		case isLock && info.Mode().IsRegular():
			discard(path)
		case !isLock && info.IsDir() && now.Sub(info.ModTime()) > unlocked:
			if _, err := os.Lstat(path + stagingLock); errors.Is(err, fs.ErrNotExist) {
				_ = os.RemoveAll(path)
			}
		}
	}
}

// discard removes a staging folder and its lock if no process holds the lock. While
// discard holds it, no process makes the folder.
func discard(path string) {
	lock, err := Claim(path + stagingLock)
	if err != nil {
		return
	}
	defer lock.Close()
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return // not made by Stage
	}
	if os.RemoveAll(path) == nil {
		_ = os.Remove(path + stagingLock)
	}
}

// digits reports whether text can be the random part of a name by Stage.
func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
