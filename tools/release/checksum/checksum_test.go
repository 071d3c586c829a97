package checksum_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/tools/release/checksum"
)

func write(t *testing.T, folder, name, content string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// released returns a folder with two files, their list and a signature.
func released(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, "swdt.tar.gz", "archive")
	write(t, folder, "swdt-homebrew.rb", "formula")
	entries, err := checksum.Folder(folder)
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, checksum.File, string(checksum.Format(entries)))
	write(t, folder, "SHA256SUMS.minisig", "signature")
	return folder
}

func TestEveryDifferenceIsFound(t *testing.T) {
	for name, one := range map[string]struct {
		change func(t *testing.T, folder string)
		want   string
	}{
		"changed": {func(t *testing.T, f string) { write(t, f, "swdt.tar.gz", "archivE") }, "swdt.tar.gz has the SHA-256"},
		"added":   {func(t *testing.T, f string) { write(t, f, "more.zip", "") }, "more.zip is not in SHA256SUMS"},
		"added, named like the list": {func(t *testing.T, f string) { write(t, f, "SHA256SUMS.exe", "") },
			"SHA256SUMS.exe is not in SHA256SUMS"},
		"added, named like the signature": {func(t *testing.T, f string) { write(t, f, "SHA256SUMS.minisig.exe", "") },
			"SHA256SUMS.minisig.exe is not in SHA256SUMS"},
		"added in a folder": {func(t *testing.T, f string) { write(t, f, "more/SHA256SUMS", "") },
			"more/SHA256SUMS is not in SHA256SUMS"},
		"removed": {func(t *testing.T, f string) {
			if err := os.Remove(filepath.Join(f, "swdt-homebrew.rb")); err != nil {
				t.Fatal(err)
			}
		}, "swdt-homebrew.rb is missing"},
	} {
		folder := released(t)
		one.change(t, folder)
		if err := checksum.Verify(folder); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: got %v, want %q", name, err, one.want)
		}
	}
}
