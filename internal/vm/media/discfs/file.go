package discfs

import (
	"errors"
	"io"
	"io/fs"
	"sort"
	"time"
)

// info describes a file or folder.
type info struct {
	name  string
	entry Entry
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.entry.Size }
func (i info) ModTime() time.Time { return i.entry.Modified }
func (i info) IsDir() bool        { return i.entry.Dir }
func (i info) Sys() any           { return nil }

// Mode returns the type and the permission to read, but none to write.
func (i info) Mode() fs.FileMode {
	switch {
	case i.entry.Dir:
		return fs.ModeDir | 0o555
	case i.entry.Irregular:
		return fs.ModeIrregular | 0o444
	}
	return 0o444
}

// dirEntry is a name in a folder. Its record is read only when Info is called.
type dirEntry struct{ child Child }

func (d dirEntry) Name() string { return d.child.Name }
func (d dirEntry) IsDir() bool  { return d.child.Dir }

// Type returns the type of the entry. For an irregular file, it returns the type of a regular file,
// since only the file's record has the right type.
func (d dirEntry) Type() fs.FileMode {
	if d.child.Dir {
		return fs.ModeDir
	}
	return 0
}

func (d dirEntry) Info() (fs.FileInfo, error) {
	entry, err := d.child.Load()
	if err != nil {
		return nil, err
	}
	return info{d.child.Name, entry}, nil
}

// file is an open file.
type file struct {
	image  *Image
	path   string
	info   info
	starts []int64 // each extent's offset within the file
	at     int64
}

func newFile(image *Image, path string, info info) *file {
	f := &file{image: image, path: path, info: info}
	var start int64
	for _, e := range info.entry.Extents {
		f.starts = append(f.starts, start)
		start += e.Length
	}
	return f
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// Read reads from the current position.
func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// Seek sets the position of the next Read.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.info.entry.Size
	}
	if offset < 0 {
		return 0, &fs.PathError{Op: "seek", Path: f.path, Err: fs.ErrInvalid}
	}
	f.at = offset
	return offset, nil
}

// ReadAt reads from any position, across extents.
func (f *file) ReadAt(p []byte, at int64) (int, error) {
	switch {
	case at < 0:
		return 0, &fs.PathError{Op: "read", Path: f.path, Err: fs.ErrInvalid}
	case f.info.entry.Irregular:
		return 0, &fs.PathError{Op: "read", Path: f.path, Err: errors.New("not a regular file")}
	}
	read := 0
	for read < len(p) && at < f.info.entry.Size {
		n, err := f.readPart(p[read:], at)
		if err != nil {
			return read, &fs.PathError{Op: "read", Path: f.path, Err: err}
		}
		read, at = read+n, at+int64(n)
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}

// readPart reads bytes of the file from an offset on, at most as many as p can hold, and returns
// their number. It stops at the end of the extent or record that holds the first byte. It reads at
// least one byte.
func (f *file) readPart(p []byte, at int64) (int, error) {
	if len(f.starts) == 0 {
		return copy(p, f.info.entry.Inline[at:]), nil
	}
	i := sort.Search(len(f.starts), func(i int) bool { return f.starts[i] > at }) - 1
	extent, into := f.info.entry.Extents[i], at-f.starts[i]
	p = p[:min(int64(len(p)), extent.Length-into)]
	if extent.Offset < 0 {
		clear(p)
		return len(p), nil
	}
	return len(p), f.image.Read(p, extent.Offset+into)
}

// openFolder is an open folder.
type openFolder struct {
	fs   *FS
	path string
	info info
	rest []fs.DirEntry
	read bool
}

func (o *openFolder) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openFolder) Close() error               { return nil }

func (o *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.path, Err: errors.New("is a folder")}
}

// ReadDir returns the next n entries, or all further entries if n is not positive.
func (o *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if !o.read {
		all, err := o.fs.ReadDir(o.path)
		if err != nil {
			return nil, err
		}
		o.rest, o.read = all, true
	}
	if n <= 0 {
		n = len(o.rest)
	} else if len(o.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.rest))
	next := o.rest[:n:n]
	o.rest = o.rest[n:]
	return next, nil
}
