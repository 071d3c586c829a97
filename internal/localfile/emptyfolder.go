package localfile

import (
	"fmt"
	"os"
	"path/filepath"
)

// EmptyFolder makes a folder for the results of a command that has a flag --out, unless an empty one
// exists, and returns its absolute path. Only this user can read a new folder.
func EmptyFolder(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("make the folder of the results: %w; name another with --out", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", fmt.Errorf("read the folder of the results: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("the folder %s is not empty; name another with --out", path)
	}
	return path, nil
}
