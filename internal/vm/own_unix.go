//go:build !windows

package vm

import (
	"io/fs"
	"os"
	"syscall"
)

// modesMatter is true: on Unix, the mode of a folder decides which other users can access it.
const modesMatter = true

// ownedByUser reports whether a file belongs to the user whom swdt runs as.
func ownedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// allocated returns how many bytes a file takes on the disk. Holes in the file take none.
func allocated(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Blocks) * 512
	}
	return info.Size()
}
