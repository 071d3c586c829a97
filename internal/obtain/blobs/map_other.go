//go:build !unix

package blobs

// mapFile reads the file into memory: on this system a mapped file could not be removed.
func mapFile(path string) (Content, error) { return readFile(path) }
