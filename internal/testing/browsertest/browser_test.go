package browsertest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestBrowserIsFoundUnderEachName(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	if got := browser(); got != "" {
		t.Errorf("without a browser: %s", got)
	}
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} { // the last one is preferred
		want := filepath.Join(folder, name)
		if runtime.GOOS == "windows" {
			want += ".exe"
		}
		if err := os.WriteFile(want, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		if got := browser(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
