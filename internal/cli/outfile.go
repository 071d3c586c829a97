package cli

import (
	"os"
	"path/filepath"
)

// checkOutFile rejects a file that cannot be written, before any work is done.
func checkOutFile(flag, path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return usagef("%s %s: this is not a regular file; name the file to write", flag, path)
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return usagef("%s %s: there is no folder %s; make it, or name a file elsewhere", flag, path, folder)
	}
	return nil
}
