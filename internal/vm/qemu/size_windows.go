package qemu

import "os"

// allocated returns how many bytes a file takes on the disk; 0 if that is not known.
func allocated(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
