//go:build windows

package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
)

// snapshot is the stored state of a snapshot, which outlives this process.
type snapshot struct {
	Name, Parent     string
	Kind             snapshotsapi.Kind
	Labels           map[string]string
	Created, Updated time.Time
	// Folder is the snapshot's folder below the root. A committed snapshot has the folder of its
	// layer.
	Folder string
}

// store has all snapshots by name, in one file.
type store struct {
	root, content string
	Last          int
	Snapshots     map[string]*snapshot
}

func openStore(root, content string) (*store, error) {
	s := &store{root: root, content: content, Snapshots: map[string]*snapshot{}}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(text, s)
}

func (s *store) file() string { return filepath.Join(s.root, "snapshots.json") }

func (s *store) save() error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	unfinished := s.file() + ".new"
	if err := os.WriteFile(unfinished, text, 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, s.file())
}

func (s *store) path(one *snapshot) string { return filepath.Join(s.root, one.Folder) }

// unpack unpacks the layer with a digest, unless it is already unpacked. It returns the layer's
// folder below the root.
func (s *store) unpack(digest string) (folder string, err error) {
	algorithm, name, _ := strings.Cut(digest, ":")
	folder = filepath.Join("layers", name)
	finished := filepath.Join(s.root, folder)
	if _, err := os.Stat(finished); err == nil {
		return folder, nil
	}
	layer, err := os.Open(filepath.Join(s.content, "blobs", algorithm, name))
	if err != nil {
		return "", fmt.Errorf("find the only layer of an image: %w", err)
	}
	defer layer.Close()
	unfinished := finished + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", err
	}
	if err := untar(layer, unfinished); err != nil {
		return "", fmt.Errorf("unpack layer %s: %w", digest, err)
	}
	return folder, os.Rename(unfinished, finished)
}

// decompress unpacks the compressed layer with a digest, and returns the digest and the size of what was
// compressed.
func (s *store) decompress(digest string) (uncompressed string, size int64, err error) {
	algorithm, name, _ := strings.Cut(digest, ":")
	layer, err := os.Open(filepath.Join(s.content, "blobs", algorithm, name))
	if err != nil {
		return "", 0, fmt.Errorf("find a layer: %w", err)
	}
	defer layer.Close()
	plain, err := gzip.NewReader(layer)
	if err != nil {
		return "", 0, fmt.Errorf("decompress layer %s: %w", digest, err)
	}
	unfinished := filepath.Join(s.root, "layers", name+".new")
	if err := os.RemoveAll(unfinished); err != nil {
		return "", 0, err
	}
	hash, count := sha256.New(), &counter{}
	read := io.TeeReader(plain, io.MultiWriter(hash, count))
	err = untar(read, unfinished)
	if err == nil {
		_, err = io.Copy(io.Discard, read) // what follows the end of the archive counts too
	}
	if err != nil {
		return "", 0, fmt.Errorf("unpack layer %s: %w", digest, err)
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	finished := filepath.Join(s.root, "layers", sum)
	if _, err := os.Stat(finished); err == nil {
		return "sha256:" + sum, count.size, os.RemoveAll(unfinished)
	}
	return "sha256:" + sum, count.size, os.Rename(unfinished, finished)
}

// counter counts the bytes that are written to it.
type counter struct{ size int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	return len(p), nil
}

func untar(layer io.Reader, to string) error {
	archive := tar.NewReader(layer)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(header.Name)
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%s is outside of the layer", header.Name)
		}
		path := filepath.Join(to, name)
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
			continue
		}
		if err := writeFile(path, archive); err != nil {
			return err
		}
	}
}

func writeFile(path string, content io.Reader) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, content)
	return err
}
