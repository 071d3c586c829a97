//go:build unix

package blobs

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile returns a file's content without copying it. If the system has the content in
// memory and the reader reads all of it once, a copy would be half of the work.
func mapFile(path string) (Content, error) {
	file, err := os.Open(path)
	if err != nil {
		return Content{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return Content{}, err
	}
	bytes, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return readFile(path)
	}
	_ = unix.Madvise(bytes, unix.MADV_WILLNEED)
	return Content{Bytes: bytes, release: func() { _ = unix.Munmap(bytes) }}, nil
}
