package localfile

import (
	"errors"
	"fmt"
)

// ErrClaimed is the error of Claim for a file that is already claimed.
var ErrClaimed = errors.New("another swdt is writing it")

// NoRoomError reports that the disk of a folder has less free space than is needed.
type NoRoomError struct {
	Folder     string
	Need, Free int64 // bytes
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("no room on the disk of %s: %.1f MB are needed, and %.1f MB are free; free some space, or "+
		"name another place",
		e.Folder, float64(e.Need)/1e6, float64(e.Free)/1e6)
}

// Fits returns a *NoRoomError if the disk of a folder has less free space than the given number of
// bytes. If the free space is unknown, Fits returns nil: if the disk is then too full, the later
// write fails.
func Fits(folder string, bytes int64) error {
	free, err := free(folder)
	if err == nil && bytes > free {
		return &NoRoomError{Folder: folder, Need: bytes, Free: free}
	}
	return nil
}

// FullError reports that a disk of your machine was full at a write.
type FullError struct {
	Folder string // of the file that did not fit
	Err    error
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%v: your machine's disk is full; free some space on the disk of %s", e.Err, e.Folder)
}
func (e *FullError) Unwrap() error { return e.Err }

// asFull returns a *FullError for the error of a write that found no room on the disk of a folder.
func asFull(folder string, err error) error {
	if isFull(err) {
		return &FullError{Folder: folder, Err: err}
	}
	return err
}
