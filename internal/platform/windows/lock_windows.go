package windows

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// holderLimit is how many bytes of a lock file are read as the description of its holder.
const holderLimit = 4 << 10

// lockedByte is the one byte of a lock file that is locked. It is far beyond the content, since
// other processes cannot read a locked range.
func lockedByte() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 0x7fff0000} }

func (f files) Lock(path string, holder []byte) (platform.Unlocker, error) {
	path, err := clean(path)
	if err != nil {
		return nil, err
	}
	// Do not share the file for deletion: if it could be deleted, two processes could hold the
	// lock.
	handle, err := open(path, windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL)
	if err != nil {
		return nil, failed(f.orFolder(path, err), "open lock file %s", path)
	}
	file := os.NewFile(uintptr(handle), path)
	err = windows.LockFileEx(handle, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0,
		1, 0, lockedByte())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		defer file.Close()
		held, _ := io.ReadAll(io.LimitReader(file, holderLimit)) // an error is ignored: the holder is optional
		return nil, &fault.LockedError{Path: path, Holder: held}
	}
	if err != nil {
		return nil, errors.Join(failed(err, "lock %s", path), file.Close())
	}
	lock := &fileLock{file: file, path: path}
	if err := lock.sign(holder); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return lock, nil
}

type fileLock struct {
	file *os.File
	path string
}

func (l *fileLock) sign(holder []byte) error {
	if err := l.file.Truncate(0); err != nil {
		return failed(err, "empty lock file %s", l.path)
	}
	if _, err := l.file.WriteAt(holder, 0); err != nil {
		return failed(err, "write lock file %s", l.path)
	}
	return failed(windows.FlushFileBuffers(windows.Handle(l.file.Fd())), "write lock file %s to the disk", l.path)
}

// Unlock empties the file, so that the file does not name the former holder.
func (l *fileLock) Unlock() error {
	emptied := l.file.Truncate(0)
	unlocked := windows.UnlockFileEx(windows.Handle(l.file.Fd()), 0, 1, 0, lockedByte())
	return failed(errors.Join(emptied, unlocked, l.file.Close()), "unlock %s", l.path)
}
