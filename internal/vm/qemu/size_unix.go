//go:build unix

package qemu

import (
	"os"
	"syscall"
)

// statBlock is the unit of syscall.Stat_t.Blocks in bytes.
const statBlock = 512

// allocated returns how many bytes a file takes on the disk; 0 if that is not known.
func allocated(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * statBlock
	}
	return info.Size()
}
