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

// stagingLock is the end of the name of the lock file beside a staging folder. A process takes the
// lock before it makes the folder, and releases the lock after it has removed or renamed the
// folder. So a folder whose lock is free was left behind: the process that made the folder was
// killed, or could not remove the folder. The lock file is not inside the folder, since Windows
// does not rename a folder in which a file is open.
const stagingLock = ".swdt-lock"

const (
	// unlocked is the age from which a staging folder without a lock file is removed. The lock file
	// is missing only if a user or another program removed it.
	unlocked = 24 * time.Hour
	// stageTries bounds the search for a free name.
	stageTries = 100
)

// Staging is a folder for unfinished files, which only its owner can access.
type Staging struct {
	Path string
	lock *os.File // nil after Remove, and after Keep succeeded
}

// Stage makes a folder PREFIX-RANDOM in folder. Stage first removes the folders with this prefix
// that processes left behind when they ended.
func Stage(folder, prefix string) (*Staging, error) {
	tidy(folder, prefix, time.Now())
	for range stageTries {
		path := filepath.Join(folder, prefix+"-"+strconv.FormatUint(uint64(rand.Uint32()), 10))
		s, err := stageAt(path)
		if errors.Is(err, ErrClaimed) || errors.Is(err, fs.ErrExist) {
			continue // another process uses this name
		}
		return s, err
	}
	return nil, fmt.Errorf("make a folder %s: %d random names are taken; remove those that no program uses",
		filepath.Join(folder, prefix+"-*"), stageTries)
}

// Scratch makes a folder for the temporary files of one run, in the system's folder for such files. Scratch first
// removes the folders of runs that were killed, of whatever command.
func Scratch() (*Staging, error) { return Stage(os.TempDir(), "swdt-scratch") }

func stageAt(path string) (*Staging, error) {
	lock, err := Claim(path + stagingLock)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		// If the folder exists, the lock file stays, so that tidy can remove the folder.
		if !errors.Is(err, fs.ErrExist) {
			_ = os.Remove(path + stagingLock)
		}
		lock.Close()
		return nil, err
	}
	return &Staging{Path: path, lock: lock}, nil
}

// Remove removes the folder with everything in it. Remove does nothing after an earlier Remove, or
// if Keep has renamed the folder.
func (s *Staging) Remove() error {
	if s.lock == nil {
		return nil
	}
	defer s.unlock()
	if err := os.RemoveAll(s.Path); err != nil {
		return err // the lock file stays, so that the next Stage tries again
	}
	if err := os.Remove(s.Path + stagingLock); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Keep renames the folder to path; neither Remove nor a later Stage then removes the folder. If the
// rename fails, the folder is still a staging folder.
func (s *Staging) Keep(path string) error {
	if err := os.Rename(s.Path, path); err != nil {
		return err
	}
	_ = os.Remove(s.Path + stagingLock) // if this fails, the next Stage removes the lock file
	s.unlock()
	return nil
}

func (s *Staging) unlock() {
	s.lock.Close()
	s.lock = nil
}

// tidy removes staging folders and locks of processes that have ended. tidy ignores errors: a
// folder that it cannot remove belongs to another user, or a later call removes the folder.
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

// discard removes a staging folder and its lock if no process holds the lock. While discard holds
// the lock, no process can make a folder with this name.
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

// digits reports whether text can be the random part of a staging folder's name.
func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
