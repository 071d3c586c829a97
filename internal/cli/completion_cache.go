package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// A user who looks for a name presses the key several times within seconds.
const (
	// completionAge is how long names are offered that were listed before.
	completionAge = 30 * time.Second
	// mostCached bounds a file of names, in bytes.
	mostCached = 1 << 20
)

// cachedNames returns what list has returned for the same key within completionAge, and else what it returns
// now. A cache that cannot be read or written is none.
func cachedNames(key string, list func() ([]string, error)) ([]string, error) {
	path := cacheOf(key)
	if names, ok := readNames(path); ok {
		return names, nil
	}
	names, err := list()
	if err != nil || path == "" {
		return names, err
	}
	if text, err := json.Marshal(names); err == nil && len(text) <= mostCached {
		if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
			_ = localfile.Replace(path, text)
		}
	}
	return names, nil
}

// cacheOf returns the file with the names of a key, or "" if the user has no folder for caches. The names of
// the files are few: one for each cluster that the user has completed.
func cacheOf(key string) string {
	cache, err := localfile.CacheFolder()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(cache, "swdt", "completion", hex.EncodeToString(sum[:8])+".json")
}

func readNames(path string) (names []string, ok bool) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, false
	}
	if age := time.Since(info.ModTime()); age < 0 || age > completionAge {
		return nil, false
	}
	text, err := io.ReadAll(io.LimitReader(file, mostCached))
	return names, err == nil && json.Unmarshal(text, &names) == nil
}
