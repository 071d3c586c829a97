package media

import (
	"errors"
	"io"
	"io/fs"

	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
	"github.com/swdt-dev/swdt/internal/vm/media/iso9660"
	"github.com/swdt-dev/swdt/internal/vm/media/udf"
)

// Disc is the tree of files of an ISO. Look-up ignores case, and open files implement
// io.ReaderAt.
type Disc struct {
	*discfs.FS
	Format  string // udf or iso9660
	Label   string
	Missing int64 // bytes of the file system that lie beyond the end of the file
}

// Open opens the UDF file system of an ISO of size bytes or, if there is none, the ISO 9660 file
// system. Windows media have both, but their ISO 9660 file system holds only a note. The errors are
// those of package discfs.
func Open(r io.ReaderAt, size int64) (*Disc, error) {
	u, err := udf.Open(r, size)
	if err == nil {
		return &Disc{FS: u.FS, Format: "udf", Label: u.Label(), Missing: u.Missing()}, nil
	}
	var format *discfs.FormatError
	if !errors.As(err, &format) {
		return nil, err
	}
	i, err := iso9660.Open(r, size)
	if errors.As(err, &format) {
		return nil, &discfs.FormatError{Format: "ISO"}
	}
	if err != nil {
		return nil, err
	}
	return &Disc{FS: i.FS, Format: "iso9660", Label: i.Label(), Missing: i.Missing()}, nil
}

// readerAt opens a file for reads at any position. ok is false if there is no such file, or if it
// is a folder.
func readerAt(fsys fs.FS, name string) (r io.ReaderAt, size int64, ok bool, err error) {
	file, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, err
	}
	found, err := file.Stat()
	if err != nil || found.IsDir() {
		return nil, 0, false, err
	}
	r, ok = file.(io.ReaderAt)
	return r, found.Size(), ok, nil
}
