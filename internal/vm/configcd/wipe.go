package configcd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm/disc"
)

// Wipe removes the CD's file, and the files that a killed Write has left beside it. It first writes
// zeros over these files, so that a later reader of the disk does not find the password. This works
// only if the file system overwrites in place: a file system that copies on write, an SSD or a
// backup can keep the old content. A file that is absent is no error. Call Wipe as soon as the VM
// has no CD any more.
func Wipe(path string) error {
	unfinished, err := filepath.Glob(globbed(path) + ".*.new")
	if err != nil {
		return fmt.Errorf("remove the configuration CD: %w", err)
	}
	var problems []error
	for _, file := range append(unfinished, path) {
		if err := wipe(file); err != nil {
			problems = append(problems, fmt.Errorf("remove the configuration CD: %w; delete %s yourself", err, file))
		}
	}
	return errors.Join(problems...)
}

// Empty wipes the CD's file and puts an empty CD in its place, so that the VM keeps its CD drive.
func Empty(path string) error {
	if err := Wipe(path); err != nil {
		return err
	}
	image, err := disc.New(emptyLabel, time.Unix(0, 0))
	if err == nil {
		err = localfile.ReplaceBy(path, func(w io.Writer) error {
			_, err := image.WriteTo(w)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write an empty CD: %w", err)
	}
	return nil
}

// emptyLabel is the label of an empty CD.
const emptyLabel = "SWDT_EMPTY"

// globbed returns a pattern for filepath.Glob that matches this path alone.
func globbed(path string) string {
	if filepath.Separator == '\\' {
		return path // on Windows, a pattern has no escape character
	}
	var out []rune
	for _, r := range path {
		switch r {
		case '*', '?', '[', '\\':
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}

func wipe(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular(): // remove a link, and leave its target alone
		return os.Remove(path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	opened, err := file.Stat()
	if err == nil && os.SameFile(info, opened) {
		_, err = io.CopyN(file, zeros{}, opened.Size())
		err = errors.Join(err, file.Sync())
	}
	return errors.Join(err, file.Close(), os.Remove(path))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
