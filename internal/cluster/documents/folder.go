package documents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// The bounds of a folder, and of a text that the user names.
const (
	mostFiles = 20_000
	mostSum   = 256 << 20 // of all files of a folder
	mostBytes = 4 << 20   // of a file of a folder
	mostNamed = 32 << 20  // of a file that was named, or of stdin
)

// TooManyFilesError reports a folder that has more files than Folder reads.
type TooManyFilesError struct{}

func (e *TooManyFilesError) Error() string {
	return "the folder has more than 20000 files: name a smaller one"
}

// TooManyBytesError reports a folder whose files have more bytes together than Folder reads.
type TooManyBytesError struct{}

func (e *TooManyBytesError) Error() string {
	return fmt.Sprintf("the files of the folder have more than %d MiB together: name a smaller one", mostSum>>20)
}

// TooLargeError reports a text that has more bytes than are read.
type TooLargeError struct{ Name string }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("read %s: it has more than %d MiB; name a part of it", e.Name, mostNamed>>20)
}

// Files are the callbacks of Folder.
type Files struct {
	// Wanted reports whether a file is read. name is its path below the folder.
	Wanted func(name string) bool
	// Read is called with each file.
	Read func(name string, content []byte)
	// Skipped is called with each file or folder that could not be read, and the reason.
	Skipped func(name, why string)
}

// Folder reads the wanted files below a folder. Hidden folders are left out. Links to files are followed as far as the
// folder's file system does, such as that of os.Root, which keeps them below the folder; links to folders are skipped.
func Folder(folder fs.FS, files Files) error {
	w := walk{folder: folder, files: files}
	return fs.WalkDir(folder, ".", w.visit)
}

// walk is one reading of a folder.
type walk struct {
	folder fs.FS
	files  Files
	count  int
	sum    int // bytes
}

func (w *walk) visit(name string, entry fs.DirEntry, err error) error {
	switch {
	case err != nil:
		if name == "." {
			return err
		}
		w.files.Skipped(name, plainReason(err))
		return nil
	case name != "." && strings.HasPrefix(entry.Name(), ".") && entry.IsDir():
		return fs.SkipDir
	case entry.Type()&fs.ModeSymlink != 0:
		return w.link(name, entry)
	case !entry.Type().IsRegular() || !w.files.Wanted(name):
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		w.files.Skipped(name, plainReason(err))
		return nil
	}
	return w.file(name, info)
}

// link reads the file to which a link leads.
func (w *walk) link(name string, entry fs.DirEntry) error {
	info, err := fs.Stat(w.folder, name)
	switch {
	case err != nil:
		if w.files.Wanted(name) {
			w.files.Skipped(name, "is a link that leads nowhere, or out of the folder")
		}
	case info.IsDir() && !strings.HasPrefix(entry.Name(), "."):
		w.files.Skipped(name, "is a link to a folder")
	case info.Mode().IsRegular() && w.files.Wanted(name):
		return w.file(name, info)
	}
	return nil
}

func (w *walk) file(name string, info fs.FileInfo) error {
	if w.count++; w.count > mostFiles {
		return &TooManyFilesError{}
	}
	if info.Size() > mostBytes {
		w.files.Skipped(name, "has more than 4 MiB")
		return nil
	}
	content, err := fs.ReadFile(w.folder, name)
	if err != nil {
		w.files.Skipped(name, plainReason(err))
		return nil
	}
	if w.sum += len(content); w.sum > mostSum {
		return &TooManyBytesError{}
	}
	w.files.Read(name, content)
	return nil
}

// ReadFile returns a file that the user names, which may be larger than one of a folder. A file that is larger still is a
// *TooLargeError.
func ReadFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadAll(file, name)
}

// ReadAll returns all of r. If it is larger than a named file may be, the error is a *TooLargeError.
func ReadAll(r io.Reader, name string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, mostNamed+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(content) > mostNamed {
		return nil, &TooLargeError{Name: name}
	}
	return content, nil
}

// IsManifest reports whether a file of this name is YAML or JSON.
func IsManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// plainReason returns a file error without the file's name.
func plainReason(err error) string {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err.Error()
	}
	return err.Error()
}
