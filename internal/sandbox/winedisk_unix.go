//go:build unix

package sandbox

import (
	"fmt"
	"syscall"
)

// FreeBytes returns the free space of the file system that holds the prefix.
func (d prefixDisk) FreeBytes(path string) (int64, error) {
	local, err := d.local(path)
	if err != nil {
		return 0, err
	}
	var volume syscall.Statfs_t
	if err := syscall.Statfs(local, &volume); err != nil {
		return 0, fmt.Errorf("find the free space of %s: %w", path, err)
	}
	return int64(volume.Bavail) * int64(volume.Bsize), nil
}
