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
	mostBytes = 4 << 20  // of a file of a folder
	mostNamed = 32 << 20 // of a file that was named, or of stdin
)

// TooManyFilesError reports a folder that has more files than Folder reads.
type TooManyFilesError struct{}

func (e *TooManyFilesError) Error() string {
	return "the folder has more than 20000 files: name a smaller one"
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

// Folder reads the wanted files below a folder. Hidden folders are left out.
func Folder(folder fs.FS, files Files) error {
	count := 0
	return fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if name == "." {
				return err
			}
			files.Skipped(name, plainReason(err))
			return nil
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !files.Wanted(name):
			return nil
		}
		if count++; count > mostFiles {
			return &TooManyFilesError{}
		}
		if info, err := entry.Info(); err == nil && info.Size() > mostBytes {
			files.Skipped(name, "has more than 4 MiB")
			return nil
		}
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			files.Skipped(name, plainReason(err))
			return nil
		}
		files.Read(name, content)
		return nil
	})
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
