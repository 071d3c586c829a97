// Package winetest gives tests a Wine prefix to run Windows programs in.
package winetest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/wine"
)

// Prepare makes a prefix that runs until the test ends. Where there is no Wine,
// the test is skipped.
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
	// Windows's own processes would otherwise be the first program's children, and
	// keep its streams.
	_, stop, err := prefix.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return prefix
}

// Install copies a program to where a prefix has it.
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
