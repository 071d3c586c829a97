package localfile

import (
	"errors"
	"fmt"
)

// ErrClaimed is returned for a file that is already claimed.
var ErrClaimed = errors.New("another swdt is writing it")

// NoRoomError reports that something does not fit on a disk.
type NoRoomError struct {
	Folder     string
	Need, Free int64 // bytes
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("no room on the disk of %s: %.1f MB are needed, and %.1f MB are free; free some space, or "+
		"name another place",
		e.Folder, float64(e.Need)/1e6, float64(e.Free)/1e6)
}

// Fits returns a *NoRoomError if the disk of a folder has less free space than bytes.
// If the free space is unknown, it returns nil; if there is no room, the later write
// then fails.
func Fits(folder string, bytes int64) error {
	free, err := free(folder)
	if err == nil && bytes > free {
		return &NoRoomError{Folder: folder, Need: bytes, Free: free}
	}
	return nil
}
