package localfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNotRegular reports a folder, pipe, socket or device instead of a file.
var ErrNotRegular = errors.New("is not a file")

// OpenRegular opens a regular file for reading. Unlike os.Open, it does not wait for the writer of a named pipe. The
// error is an fs.PathError, or an ErrNotRegular that names the path.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}
