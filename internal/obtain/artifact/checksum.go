package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// checksumLimit is larger than any file of checksums, in bytes.
const checksumLimit = 1 << 20

// checksum returns the hash of the file at a place. It reads the hash from the file of
// checksums that is published beside that file.
func (s *Store) checksum(ctx context.Context, at place, ending string, r ui.Reporter) (string, error) {
	beside := at.withSuffix(ending)
	file, err := s.file(ctx, beside, source.Request{MaxSize: checksumLimit}, r)
	if err != nil {
		return "", err
	}
	text := []byte{}
	if file.Size <= checksumLimit { // only a local file of checksums can exceed the limit
		if text, err = os.ReadFile(file.Path); err != nil {
			return "", fmt.Errorf("read %s: %w", beside, err)
		}
	}
	hash, ok := parseChecksum(string(text), baseName(at))
	if !ok {
		return "", fmt.Errorf("%s has no SHA-256 of %s: it must be 64 hexadecimal digits, as sha256sum prints them",
			beside, baseName(at))
	}
	return hash, nil
}

func baseName(at place) string {
	if at.local() {
		return filepath.Base(string(at))
	}
	return path.Base(at.String())
}

// parseChecksum finds the hash of a file in text, by the file's name. The text is the hash alone,
// or lines of sha256sum: the hash, spaces, perhaps a *, and the file's name.
func parseChecksum(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		hash, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimPrefix(strings.TrimSpace(rest), "*")
		if rest != "" && path.Base(rest) != name {
			continue
		}
		if sum, err := hex.DecodeString(hash); err == nil && len(sum) == sha256.Size {
			return strings.ToLower(hash), true
		}
	}
	return "", false
}

// A file that was published under a version never changes. So once a file was verified with a
// checksum, swdt does not request that checksum again while the file is in the cache, and a
// second run works without the network. This applies only to places whose names contain the
// version: MIRROR/kubelet.exe may be another file tomorrow.

// remembered returns the stored checksum of a place, or false if the cache lacks the checksum or
// the file.
func (s *Store) remembered(w Wish, at place) (string, bool) {
	if !lasting(w, at) {
		return "", false
	}
	path, err := s.memory(at)
	if err != nil {
		return "", false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	store, err := s.blobs()
	hash := string(text)
	return hash, err == nil && store.Has(hash)
}

// remember stores a checksum. If that fails, the next run requests the checksum again.
func (s *Store) remember(w Wish, at place, hash string) {
	if !lasting(w, at) {
		return
	}
	if path, err := s.memory(at); err == nil {
		_ = localfile.Replace(path, []byte(hash))
	}
}

func lasting(w Wish, at place) bool {
	return !at.local() && w.Version != "" && strings.Contains(at.String(), w.Version)
}

func (s *Store) memory(at place) (string, error) {
	// a URL may contain secrets, and characters that no file name can have
	sum := sha256.Sum256([]byte(at))
	return s.cached("checksums", hex.EncodeToString(sum[:]))
}

// cached returns the path of a file in the cache, and makes its folder.
func (s *Store) cached(folder, name string) (string, error) {
	store, err := s.blobs()
	if err != nil {
		return "", err
	}
	folder = filepath.Join(filepath.Dir(store.Folder()), folder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	return filepath.Join(folder, name), nil
}

func (s *Store) blobs() (*blobs.Store, error) {
	if s.options.Cache == "" {
		return blobs.OpenDefault()
	}
	return blobs.Open(filepath.Join(s.options.Cache, "blobs"), 0)
}
