// Package winetest provides tests with a Wine prefix in which to run Windows programs.
package winetest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/sandbox/wine"
)

// Prepare creates a prefix that runs until the test ends. It skips the test if Wine is missing.
func Prepare(t testing.TB) *wine.Prefix {
	t.Helper()
	prefix, err := wine.Prepare(t.Context(), filepath.Join(t.TempDir(), "prefix"))
	var missing *wine.MissingError
	if errors.As(err, &missing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := prefix.Close(); err != nil {
			t.Error(err)
		}
	})
	// Without Keep, Windows' own processes would be children of the first program, and would keep
	// the streams of that program open.
	_, stop, err := prefix.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return prefix
}

// Install copies a program to a path in a prefix.
func Install(t testing.TB, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}
