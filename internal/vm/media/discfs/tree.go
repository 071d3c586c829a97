package discfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of a tree. Installation media have some thousand entries in ten levels.
const (
	MaxEntries     = 1 << 16
	maxDepth       = 64
	maxNameBytes   = 16 << 20 // of all names together
	maxFolderBytes = 64 << 20 // of the data of all folders together, including the data of skipped names
)

// Format reads the structures of one file system.
type Format interface {
	// Root returns the root folder.
	Root() (Child, error)
	// List returns the children of a folder. It bounds the memory that it uses. FS checks the
	// names, and that there is no loop.
	List(folder Entry) ([]Child, error)
}

// Child is a name in a folder.
type Child struct {
	Name string
	Dir  bool
	// ID identifies a folder: the byte offset of its record or data.
	ID int64
	// Load reads the record of the child.
	Load func() (Entry, error)
}

// Entry is the record of a file or folder.
type Entry struct {
	ID        int64
	Dir       bool
	Irregular bool // neither a file nor a folder, such as a symbolic link
	Size      int64
	Modified  time.Time
	Inline    []byte   // the content, if the record itself holds it
	Extents   []Extent // the content if Inline is nil; the lengths add up to Size
}

// Extent is a run of bytes of a file.
type Extent struct {
	Offset int64 // bytes from the start of the image; -1 if the bytes are zeros that the image does not hold
	Length int64
}

// FS is the tree of files of an image. It implements fs.ReadDirFS and fs.StatFS, and may be
// used by several goroutines. Paths are those of package fs, and their case does not
// matter. An open file implements io.ReaderAt and io.Seeker.
type FS struct {
	image  *Image
	format Format
	root   Child

	mutex       sync.Mutex
	folders     map[int64]*folder
	places      map[int64]place // the place of each folder that a list has named so far
	entries     int
	nameBytes   int
	folderBytes int64
}

// folder is a folder that was read once.
type folder struct {
	children []Child        // sorted by name
	index    map[string]int // the index in children, by name and by folded name
}

// place is the position of a folder in the list of its parent.
type place struct {
	parent int64
	index  int
}

// New returns the tree that format reads from an image.
func New(image *Image, format Format) (*FS, error) {
	root, err := format.Root()
	if err != nil {
		return nil, fmt.Errorf("read the root folder: %w", err)
	}
	root.Name, root.Dir = ".", true
	return &FS{
		image: image, format: format, root: root,
		folders: map[int64]*folder{},
		places:  map[int64]place{root.ID: {parent: root.ID, index: -1}},
	}, nil
}

// Open opens a file or folder.
func (f *FS) Open(name string) (fs.File, error) {
	child, entry, err := f.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if entry.Dir {
		return &openFolder{fs: f, path: name, info: info{child.Name, entry}}, nil
	}
	return newFile(f.image, name, info{child.Name, entry}), nil
}

// Stat returns the record of a file or folder.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	child, entry, err := f.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return info{child.Name, entry}, nil
}

// ReadDir returns the entries of a folder, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	_, entry, err := f.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	if !entry.Dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a folder")}
	}
	read, err := f.read(entry)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	entries := make([]fs.DirEntry, len(read.children))
	for i, child := range read.children {
		entries[i] = dirEntry{child}
	}
	return entries, nil
}

// Whole returns nil if the image holds the bytes of all its files. If not, the error names the
// first file with missing bytes.
func (f *FS) Whole() error {
	return fs.WalkDir(f, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		found, err := d.Info()
		if err != nil {
			return &fs.PathError{Op: "stat", Path: path, Err: err}
		}
		for _, e := range found.(info).entry.Extents {
			if end := e.Offset + e.Length; end > f.image.size {
				return &fs.PathError{Op: "read", Path: path, Err: f.image.cutShort(end)}
			}
		}
		return nil
	})
}

// find follows a path from the root.
func (f *FS) find(name string) (Child, Entry, error) {
	if !fs.ValidPath(name) {
		return Child{}, Entry{}, fs.ErrInvalid
	}
	child := f.root
	entry, err := child.Load()
	if err != nil || name == "." {
		return child, entry, err
	}
	depth := 0
	for part := range strings.SplitSeq(name, "/") {
		if depth++; depth > maxDepth {
			return Child{}, Entry{}, Damage(entry.ID, "folders are nested deeper than %d levels", maxDepth)
		}
		if !entry.Dir {
			return Child{}, Entry{}, fs.ErrNotExist
		}
		read, err := f.read(entry)
		if err != nil {
			return Child{}, Entry{}, err
		}
		i, found := read.index[part]
		if !found {
			i, found = read.index[folded(part)]
		}
		if !found {
			return Child{}, Entry{}, fs.ErrNotExist
		}
		child = read.children[i]
		if entry, err = child.Load(); err != nil {
			return Child{}, Entry{}, err
		}
	}
	return child, entry, nil
}

// read lists a folder at the first call, and returns the same list from then on.
func (f *FS) read(entry Entry) (*folder, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if known := f.folders[entry.ID]; known != nil {
		return known, nil
	}
	if entry.Size > maxFolderBytes-f.folderBytes {
		return nil, Damage(entry.ID, "the folders of the image have more than %d MB of names", maxFolderBytes>>20)
	}
	f.folderBytes += entry.Size
	children, err := f.format.List(entry)
	if err != nil {
		return nil, err
	}
	if err := f.admit(entry.ID, children); err != nil {
		return nil, err
	}
	slices.SortStableFunc(children, func(a, b Child) int { return cmp.Compare(a.Name, b.Name) })
	read := &folder{children: children, index: make(map[string]int, 2*len(children))}
	for _, key := range []func(string) string{func(name string) string { return name }, folded} {
		for i, child := range children {
			if _, taken := read.index[key(child.Name)]; !taken {
				read.index[key(child.Name)] = i
			}
		}
	}
	f.folders[entry.ID] = read
	return read, nil
}

// admit checks a list against the rules for names, the limits of the tree, and the earlier lists. A
// folder that has two places would make a loop, or a tree of endless size.
func (f *FS) admit(id int64, children []Child) error {
	names := make(map[string]bool, len(children))
	entries, nameBytes := f.entries, f.nameBytes
	for i, child := range children {
		f.entries++
		f.nameBytes += len(child.Name)
		problem := problemOf(child.Name)
		switch {
		case f.entries > MaxEntries || f.nameBytes > maxNameBytes:
			problem = fmt.Sprintf("the image has more than %d files or %d MB of names", MaxEntries, maxNameBytes>>20)
		case problem == "" && names[child.Name]:
			problem = fmt.Sprintf("a folder has two entries with the name %q", child.Name)
		case problem == "" && child.Dir && !f.take(child.ID, place{id, i}):
			problem = fmt.Sprintf("the folder %q has two places in the tree", child.Name)
		}
		if problem != "" {
			f.entries, f.nameBytes = entries, nameBytes
			return &DamageError{Offset: max(id, 0), Problem: problem}
		}
		names[child.Name] = true
	}
	return nil
}

func (f *FS) take(id int64, at place) bool {
	if taken, found := f.places[id]; found {
		return taken == at
	}
	f.places[id] = at
	return true
}
