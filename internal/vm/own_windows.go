package vm

import "io/fs"

// modesMatter is false: on Windows, the store inherits its access rights from the user's profile.
const modesMatter = false

// ownedByUser returns true: the store is below the user's profile, which other users
// cannot change.
func ownedByUser(fs.FileInfo) bool { return true }

// allocated returns the size of a file. On Windows, swdt does not determine how many bytes the file
// takes on the disk.
func allocated(info fs.FileInfo) int64 { return info.Size() }
