package qemu

import "os"

// allocated returns the size of a file; 0 if that is not known. On Windows, the driver does not
// determine how many bytes the file takes on the disk.
func allocated(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
