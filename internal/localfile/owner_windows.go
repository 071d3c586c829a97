package localfile

import "io/fs"

// nonBlocking is no flag: on Windows, a pipe does not open as a file.
const nonBlocking = 0

// ModesMatter is false: on Windows, a file inherits its access rights from its folder.
const ModesMatter = false

// Owner returns false: on Windows, swdt keeps its files below the user's profile, which other users cannot
// change, and does not determine their owners.
func Owner(fs.FileInfo) (user int, known bool) { return 0, false }

// Group returns false, as Owner.
func Group(fs.FileInfo) (group int, known bool) { return 0, false }

// Allocated returns the size of a file. On Windows, swdt does not determine how many bytes the file takes on
// the disk.
func Allocated(info fs.FileInfo) int64 { return info.Size() }
