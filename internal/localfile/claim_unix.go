//go:build !windows

package localfile

import (
	"errors"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// claimTries bounds how often Claim opens the file again. Claim does so if another process has
// renamed or removed the file before Claim locked it.
const claimTries = 1000

// Claim opens a file for reading and writing, and makes it with mode 0600 if it is missing. Until
// the file is closed, every other Claim of it fails with ErrClaimed, in this process and in others.
// The file may be renamed and removed meanwhile. Claim follows no symbolic link at path, since
// another user can make such a link in a folder such as /tmp.
func Claim(path string) (*os.File, error) {
	for range claimTries {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, asFull(filepath.Dir(path), err)
		}
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			err = ErrClaimed
		case err == nil && !named(file, path):
			// The last holder has renamed or removed the file: path now names another file, or
			// none.
			file.Close()
			continue
		}
		if err != nil {
			file.Close()
			return nil, err
		}
		return file, nil
	}
	return nil, ErrClaimed
}

// named reports whether path still names this file.
func named(file *os.File, path string) bool {
	ours, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(ours, there)
}

// free returns how many bytes the user may still write on a folder's disk.
func free(folder string) (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return 0, err
	}
	blocks, size := uint64(disk.Bavail), uint64(disk.Bsize) //nolint:unconvert // macOS has other types
	if size > 0 && blocks > math.MaxInt64/size {
		return math.MaxInt64, nil
	}
	return int64(blocks * size), nil
}

// isFull reports whether an error means that a disk, or the user's quota of it, is full.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
