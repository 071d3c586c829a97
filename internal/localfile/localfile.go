// Package localfile hashes and replaces files of the machine that swdt runs on.
// Package smallfile is the same for a node's.
package localfile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Hash is a file's SHA-256, hexadecimal. It ends with ctx.
func Hash(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum, buffer := sha256.New(), make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		n, err := file.Read(buffer)
		sum.Write(buffer[:n])
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// Replace makes content the file's, for its owner alone. Whoever reads it finds
// the old content or the new, also while several replace it at once.
func Replace(path string, content []byte) error {
	beside, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new")
	if err != nil {
		return err
	}
	_, err = beside.Write(content)
	if closeErr := beside.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(beside.Name(), path)
	}
	if err != nil {
		_ = os.Remove(beside.Name()) // what failed is worth more
	}
	return err
}

// Private is the mode of a new file that may hold secrets: of its owner alone.
const Private fs.FileMode = 0o600

// Create empties or makes a file that may hold secrets of a node: packets, samples,
// files of the node. A new one is Private; one that exists keeps its mode, which is
// its owner's decision.
func Create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, Private)
}
