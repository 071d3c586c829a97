// Package disc writes CD images that Windows, Linux and macOS read. The files are in a tree of Joliet, whose
// names are long and Unicode. The tree of ISO 9660, which the standard demands and these systems ignore beside
// Joliet, is empty.
//
// An [Image] is a tree of files that exists in memory; the contents are read when the
// image is written, from first to last and only once. The same tree with the same time
// gives the same bytes. A write never fails half way because of a limit: if a disc cannot
// hold a file, the call that adds it returns an error that names the file.
//
//   - disc.go: the tree, and the methods that add files to it
//   - names.go: names of Joliet
//   - layout.go: which sector each part of the image gets
//   - records.go: descriptors, path tables, directories
//   - write.go: write the image to a stream
//
// The formats are ECMA-119 and Microsoft's Joliet Specification.
package disc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Limits of an image.
const (
	// MaxFile is the size of the largest file, in bytes: directories have 32 bits for a size.
	MaxFile int64 = 1<<32 - 1
	// MaxImage is the size of the largest image, in bytes: the size of a DVD with two layers.
	MaxImage int64 = 8 << 30
	// MaxEntries is the largest number of files and folders.
	MaxEntries = 10000
	// MaxDepth is how many folders a path may name. ISO 9660 allows eight levels, and
	// the root is one.
	MaxDepth = 7
	// MaxPath is the length of the longest path, in characters. With a drive letter, such a path is
	// shorter than Windows' limit of 260 characters.
	MaxPath = 240
)

// Image is the content of a CD. The zero value is of no use; [New] returns one.
type Image struct {
	label   string
	stamp   time.Time
	root    *entry
	entries int
	bytes   int64 // total size of the files, in whole sectors
}

// entry is a file or a folder.
type entry struct {
	path   string // the path on the disc, with slashes
	name   string
	parent *entry // the root is its own parent

	folder   bool
	children []*entry
	byName   map[string]*entry // the children by folded name

	size int64
	open func() (io.ReadCloser, error)

	at place
}

// New returns an empty image. The label has 1 to 16 characters out of A–Z, 0–9 and _. All files get
// the time stamp, in UTC; its year is from 1900 to 2155.
func New(label string, stamp time.Time) (*Image, error) {
	if label == "" || len(label) > 16 || strings.Trim(label, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return nil, fmt.Errorf("the disc's label %q: write 1 to 16 of the characters A–Z, 0–9 and _", label)
	}
	stamp = stamp.UTC().Truncate(time.Second)
	if year := stamp.Year(); year < 1900 || year > 2155 {
		return nil, fmt.Errorf("the disc's time %s: ISO 9660 knows the years 1900 to 2155", stamp.Format(time.RFC3339))
	}
	return &Image{label: label, stamp: stamp, root: newRoot()}, nil
}

func newRoot() *entry {
	root := &entry{folder: true, byName: map[string]*entry{}}
	root.parent = root
	return root
}

// Add puts a file on the disc. The file's path has slashes; Add makes missing folders. The content
// must not change before the image is written.
func (i *Image) Add(file string, content []byte) error {
	return i.AddReader(file, int64(len(content)), bytes.NewReader(content))
}

// AddReader puts a file of a known size on the disc. The reader is read when the image is
// written, so the image can be written only once. The reader must return exactly size bytes.
func (i *Image) AddReader(file string, size int64, content io.Reader) error {
	return i.add(file, size, func() (io.ReadCloser, error) { return io.NopCloser(content), nil })
}

// AddFS puts all files and folders of a file system into a folder of the disc; "." is the
// root. Only regular files and folders are allowed: a link could lead to any file of
// your machine. The files are opened when the image is written, and must still have the
// size that they have now.
func (i *Image) AddFS(folder string, files fs.FS) error {
	return fs.WalkDir(files, ".", func(file string, found fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("put %s on the disc: %w", file, err)
		case file == "." && folder == ".":
			return nil
		case found.IsDir():
			_, err := i.makeFolder(path.Join(folder, file))
			return err
		case !found.Type().IsRegular():
			return refuse(path.Join(folder, file), "it is neither a file nor a folder (%s); copy the file itself there",
				found.Type())
		}
		return i.AddFile(path.Join(folder, file), files, file)
	})
}

// AddFile puts a regular file of a file system on the disc. It is opened when the image
// is written, and must still have the size that it has now.
func (i *Image) AddFile(to string, files fs.FS, file string) error {
	info, err := fs.Stat(files, file)
	switch {
	case err != nil:
		return fmt.Errorf("put %q on the disc: %w", to, err)
	case !info.Mode().IsRegular():
		return refuse(to, "%s is no regular file", file)
	}
	return i.add(to, info.Size(), func() (io.ReadCloser, error) { return openRegular(files, file) })
}

// openRegular opens a file that was a regular file when it was added. It returns an error if
// the name leads to anything else now.
func openRegular(files fs.FS, name string) (io.ReadCloser, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no longer a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Has reports whether the disc has a file or folder of this path, in upper or lower case.
func (i *Image) Has(file string) bool {
	at := i.root
	for _, name := range strings.Split(path.Clean(file), "/") {
		if at = at.byName[fold(name)]; at == nil {
			return false
		}
	}
	return true
}

func (i *Image) add(file string, size int64, open func() (io.ReadCloser, error)) error {
	switch {
	case size < 0:
		return refuse(file, "its size is unknown; copy it to a regular file first")
	case size > MaxFile:
		return refuse(file, "it has %d bytes, and a file on a disc at most %d; leave it out", size, MaxFile)
	case i.bytes+wholeSectors(size) > MaxImage:
		return refuse(file, "with it the disc would have more than %d bytes; leave out what is not needed", MaxImage)
	}
	if err := checkPath(file); err != nil {
		return err
	}
	folder, err := i.makeFolder(path.Dir(file))
	if err != nil {
		return err
	}
	made, err := i.child(folder, file)
	if err != nil {
		return err
	}
	made.size, made.open = size, open
	i.bytes += wholeSectors(size)
	return nil
}

// makeFolder returns the folder at a path, and makes the folders that are missing.
func (i *Image) makeFolder(folder string) (*entry, error) {
	at := i.root
	if folder == "." {
		return at, nil
	}
	names := strings.Split(folder, "/")
	if len(names) > MaxDepth {
		return nil, refuse(folder, "it is %d folders deep, and a disc allows %d; move it up", len(names), MaxDepth)
	}
	for depth, name := range names {
		next := at.byName[fold(name)]
		switch {
		case next == nil:
			made, err := i.child(at, strings.Join(names[:depth+1], "/"))
			if err != nil {
				return nil, err
			}
			made.folder, made.byName = true, map[string]*entry{}
			next = made
		case !next.folder:
			return nil, refuse(folder, "%s is a file already; rename the file or the folder", next.path)
		case next.name != name:
			return nil, refuse(folder, "%s exists, and Windows takes both for the same; write it in the same case", next.path)
		}
		at = next
	}
	return at, nil
}

// child adds an entry to a folder. The entry is a file until the caller sets its field folder.
func (i *Image) child(parent *entry, file string) (*entry, error) {
	name := path.Base(file)
	if err := checkPath(file); err != nil {
		return nil, err
	}
	if other := parent.byName[fold(name)]; other != nil {
		return nil, refuse(file, "%s is there already; rename one of the two", other.path)
	}
	if i.entries == MaxEntries {
		return nil, refuse(file, "the disc has %d files and folders already; leave out what is not needed", MaxEntries)
	}
	i.entries++
	made := &entry{path: file, name: name, parent: parent}
	parent.children = append(parent.children, made)
	parent.byName[fold(name)] = made
	return made, nil
}

// refuse returns the error for something that the disc cannot hold.
func refuse(file, format string, args ...any) error {
	return fmt.Errorf("put %q on the disc: "+format, append([]any{file}, args...)...)
}
