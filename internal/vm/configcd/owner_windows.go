package configcd

import "io/fs"

// ownFolder returns true; on Windows, checkFolder does not call it.
func ownFolder(fs.FileInfo) bool { return true }
