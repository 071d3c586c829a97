package sandbox

import (
	"os"
	"slices"
	"testing"
)

func TestSandboxesAreInNaturalOrder(t *testing.T) {
	state := t.TempDir()
	for _, name := range []string{"win-10", "win-2", "other"} {
		f := folderOf(state, name)
		if err := os.MkdirAll(f.path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.file(requestFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := sandboxesIn(state)
	if want := []string{"other", "win-2", "win-10"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v, want %q", names, err, want)
	}
}
