package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// single returns the file of a component whose source is the executable itself.
func (s *Store) single(ctx context.Context, w Wish, g got, r ui.Reporter) ([]File, error) {
	// Obtain the same file again, now as a Windows program. Because the hash is known, a downloaded
	// file comes from the cache.
	file, err := s.program(ctx, w, w.programs()[0], string(g.url), g.binary.SHA256, "", r)
	return []File{file}, err
}

// pick finds a component's programs in a folder, or in the folder bin below it.
func (s *Store) pick(ctx context.Context, w Wish, folder string, r ui.Reporter) ([]File, error) {
	main := w.programs()[0]
	if _, err := os.Stat(filepath.Join(folder, main)); errors.Is(err, fs.ErrNotExist) {
		below := filepath.Join(folder, "bin")
		if _, err := os.Stat(filepath.Join(below, main)); err != nil {
			return nil, &AbsentError{Field: w.field(),
				What: fmt.Sprintf("%s has no %s, nor has bin in it", folder, main)}
		}
		folder = below
	}
	var files []File
	for _, name := range w.programs() {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file, err := s.program(ctx, w, name, path, "", "", r)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// program returns a file, or an error if the file is for a node and not an executable for Windows.
// If the file comes from an archive, the caller passes the archive's name, and the error names the
// archive, not the file's copy in the cache.
func (s *Store) program(ctx context.Context, w Wish, name, url, hash, in string, r ui.Reporter) (File, error) {
	binary, err := s.sources.Obtain(ctx, source.Request{URL: url, SHA256: hash, Executable: w.forNode()}, r)
	var no *source.NotExecutableError
	if in != "" && errors.As(err, &no) {
		return File{}, &source.NotExecutableError{Name: name + " in " + in, Looks: no.Looks, Remedy: no.Remedy}
	}
	return File{Name: name, Binary: binary}, err
}
