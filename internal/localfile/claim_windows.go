package localfile

import (
	"errors"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Claim opens a file for reading and writing, and makes it if it is missing. Until the file is
// closed, every other Claim of it fails with ErrClaimed, in this process and in others. The file
// may be renamed and removed meanwhile.
func Claim(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_DELETE, nil, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil, ErrClaimed
	}
	if err != nil {
		return nil, asFull(filepath.Dir(path), &os.PathError{Op: "open", Path: path, Err: err})
	}
	return os.NewFile(uintptr(handle), path), nil
}

// free returns how many bytes the user may still write on a folder's disk.
func free(folder string) (int64, error) {
	name, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var bytes uint64
	if err := windows.GetDiskFreeSpaceEx(name, &bytes, nil, nil); err != nil {
		return 0, err
	}
	return int64(min(bytes, math.MaxInt64)), nil
}

// isFull reports whether an error means that a disk, or the user's quota of it, is full.
func isFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
