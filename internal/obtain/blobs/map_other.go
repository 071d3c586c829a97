//go:build !unix

package blobs

// mapFile reads the file into memory. On this system, a mapped file could not be
// removed.
func mapFile(path string) (Content, error) { return readFile(path) }
