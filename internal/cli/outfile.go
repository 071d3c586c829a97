package cli

import (
	"os"
	"path/filepath"
)

// checkOutFile refuses, before any work is done, a file that could not be written
// when it is over.
func checkOutFile(flag, path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return usagef("%s %s: that is no file; name one that is to be written", flag, path)
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return usagef("%s %s: there is no folder %s; make it, or name a file elsewhere", flag, path, folder)
	}
	return nil
}
