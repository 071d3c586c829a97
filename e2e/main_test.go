//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestMain gives the tests a cache folder without the user's data, since swdt keeps there how long
// its work took, and what it has sent.
func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (code int) {
	folder, err := ownCache()
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a cache folder for the tests:", err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(folder); err != nil {
			fmt.Fprintln(os.Stderr, "remove the cache folder of the tests:", err)
			code = 1
		}
	}()
	return m.Run()
}

// ownCache makes the cache folder and sets it in the environment. Two things in it are the user's, since
// they are slow to make: the template of Wine prefixes and Go's build cache.
func ownCache() (string, error) {
	users, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "swdt-e2e-cache-")
	if err != nil {
		return "", err
	}
	if os.Getenv("GOCACHE") == "" {
		err = os.Setenv("GOCACHE", filepath.Join(users, "go-build"))
	}
	template := filepath.Join(users, "swdt", "wine")
	return folder, errors.Join(err, os.MkdirAll(template, 0o700), os.Mkdir(filepath.Join(folder, "swdt"), 0o700),
		os.Symlink(template, filepath.Join(folder, "swdt", "wine")), os.Setenv("XDG_CACHE_HOME", folder))
}
