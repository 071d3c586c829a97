// Package localfile hashes, replaces and locks files on your machine, stages unfinished files, knows
// their owners, and finds the user's folders. Package smallfile reads and replaces files of a node.
package localfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Hash returns a file's SHA-256 in hexadecimal. It stops when ctx ends.
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

// Replace replaces the file's content; only the file's owner can access the new file. A reader
// finds either the old content or the new content, even if several processes replace the file at
// once.
func Replace(path string, content []byte) error {
	return ReplaceBy(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// ReplaceBy calls the given function, and replaces the file's content with the bytes that this
// function writes, as Replace does. If the function fails, the file stays unchanged. If the disk is full, the error is a
// *FullError.
func ReplaceBy(path string, write func(io.Writer) error) error {
	return replaceBy(path, Private, write)
}

// ErrChanged reports that a file has another content than expected.
var ErrChanged = errors.New("the file was changed in the meantime")

// Edit replaces the content of a file that people keep, and keeps its mode. A link stays, and its target is edited. If the
// file has another content than before, and not yet the wanted one, the error is ErrChanged.
func Edit(path string, before, after []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	switch {
	case bytes.Equal(now, after):
		return nil
	case !bytes.Equal(now, before):
		return ErrChanged
	}
	return replaceBy(path, info.Mode().Perm(), func(w io.Writer) error {
		_, err := w.Write(after)
		return err
	})
}

func replaceBy(path string, mode fs.FileMode, write func(io.Writer) error) error {
	beside, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new")
	if err != nil {
		return asFull(filepath.Dir(path), err)
	}
	err = write(beside)
	if closeErr := beside.Close(); err == nil {
		err = closeErr
	}
	if err == nil && mode != Private {
		err = os.Chmod(beside.Name(), mode)
	}
	if err == nil {
		err = os.Rename(beside.Name(), path)
	}
	if err != nil {
		_ = os.Remove(beside.Name()) // the caller needs the first error, not this one
	}
	return asFull(filepath.Dir(path), err)
}

// Private is the mode of a new file that may hold secrets: only its owner has access.
const Private fs.FileMode = 0o600

// Create makes a file that may hold secrets of a node, such as packets or samples, or
// empties an existing one. A new file has the mode Private; an existing file keeps the
// mode that its owner chose.
func Create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, Private)
}
