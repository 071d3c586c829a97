package cli

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
	"github.com/swdt-dev/swdt/internal/config"
)

// textReader takes the manifests and other texts that a command reads.
type textReader interface {
	// File takes a file; name is shown.
	File(name string, content []byte)
	// Folder takes the files below a folder; prefix is shown before each name.
	Folder(folder fs.FS, prefix string) error
	// Stream takes a text without a name.
	Stream(shown string, content []byte)
}

// readTexts reads files, folders, and stdin for -. before begins each error.
func (a *app) readTexts(r textReader, names []string, before string) error {
	for _, name := range names {
		if name == config.Stdin {
			content, err := documents.ReadAll(a.streams.In, "stdin")
			if err != nil {
				return tooLarge(err)
			}
			r.Stream("stdin", content)
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return usagef("%s%v", before, err)
		}
		shown := filepath.ToSlash(name)
		if info.IsDir() {
			prefix := strings.TrimPrefix(path.Clean(shown)+"/", "./")
			if err := readFolder(r, name, prefix); err != nil {
				return usagef("%s%s: %v", before, name, err)
			}
			continue
		}
		content, err := documents.ReadFile(name)
		if err != nil {
			return usagef("%s%v", before, err)
		}
		r.File(shown, content)
	}
	return nil
}

// readFolder reads a folder, from which no link leads out.
func readFolder(r textReader, name, prefix string) error {
	root, err := os.OpenRoot(name)
	if err != nil {
		return err
	}
	defer root.Close()
	return r.Folder(root.FS(), prefix)
}

// tooLarge returns an error as one of usage if the text is too large.
func tooLarge(err error) error {
	var large *documents.TooLargeError
	if errors.As(err, &large) {
		return usagef("%v", err)
	}
	return err
}
