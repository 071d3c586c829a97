package localfile_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
)

// Whatever the environment says, no folder is the current one's.
func TestHomeAndCacheAreNeverRelative(t *testing.T) {
	variable := "HOME"
	if runtime.GOOS == "windows" {
		variable = "USERPROFILE"
	}
	for _, home := range []string{"", ".", "relative", "../up"} {
		t.Setenv(variable, home)
		t.Setenv("XDG_CACHE_HOME", "")
		workdir.Change(t, t.TempDir())
		for name, find := range map[string]func() (string, error){"home": localfile.Home,
			"cache": localfile.CacheFolder} {
			if got, err := find(); err == nil && !filepath.IsAbs(got) {
				t.Errorf("%s=%q: the %s folder is %q", variable, home, name, got)
			}
		}
	}
	home := t.TempDir()
	t.Setenv(variable, home)
	if got, err := localfile.Home(); err != nil || got != home {
		t.Errorf("got %q, %v", got, err)
	}
}
