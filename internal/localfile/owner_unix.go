//go:build unix

package localfile

import (
	"io/fs"
	"syscall"
)

// nonBlocking is the flag with which the opening of a named pipe does not wait for its writer.
const nonBlocking = syscall.O_NONBLOCK

// ModesMatter is true: on Unix, the mode of a folder decides which other users can access it.
const ModesMatter = true

// Owner returns the number of the user to whom a file belongs.
func Owner(info fs.FileInfo) (user int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// Group returns the number of the group to which a file belongs.
func Group(info fs.FileInfo) (group int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Gid), true
}

// Allocated returns how many bytes a file takes on the disk. Holes in the file take none.
func Allocated(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * 512 // the unit of st_blocks, in bytes
	}
	return info.Size()
}
