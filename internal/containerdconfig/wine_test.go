package containerdconfig_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/containerdconfig"
	"github.com/swdt-dev/swdt/internal/wine"
)

// The real containerd.exe generates what is in testdata, and reads what is made
// of it as it is meant.
func TestRealContainerdReadsWhatIsMerged(t *testing.T) {
	if testing.Short() {
		t.Skip("runs containerd under Wine")
	}
	lab := labFolder(t)
	for _, containerd := range []string{"1.6.27", "1.7.12", "2.4.2"} {
		t.Run(containerd, func(t *testing.T) {
			exe := filepath.Join(lab, "containerd-"+containerd+".exe")
			if _, err := os.Stat(exe); errors.Is(err, fs.ErrNotExist) {
				t.Skipf("%s is missing: run make lab", exe)
			}
			readByRealContainerd(t, containerd, exe)
		})
	}
}

func labFolder(t *testing.T) string {
	t.Helper()
	if lab := os.Getenv("SWDT_LAB"); lab != "" {
		return lab
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "swdt", "lab")
}

func readByRealContainerd(t *testing.T, containerd, exe string) {
	prefix := preparePrefix(t)
	install(t, exe, filepath.Join(prefix.DriveC(), "containerd.exe"))
	run := func(args ...string) []byte { return runContainerd(t, prefix, args...) }

	generated := run("config", "default")
	want, got := flat(t, defaults(t, containerd)), flat(t, generated)
	const machine = "plugins/io.containerd.runtime.v2.task/platforms" // the prefix's build of Windows
	delete(want, machine)
	delete(got, machine)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("testdata is another containerd's, -testdata +generated:\n%s", diff)
	}
	merged, _, err := containerdconfig.Merge(generated, wishes())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(prefix.DriveC(), "config.toml"), merged, 0o600); err != nil {
		t.Fatal(err)
	}
	dumped := flat(t, run("--config", `C:\config.toml`, "config", "dump"))
	for path, want := range flat(t, merged) {
		if path == "imports" && containerd[0] == '1' {
			continue // 1.x counts the file itself
		}
		if !cmp.Equal(dumped[path], want) {
			t.Errorf("containerd reads %s as %#v, and not as %#v", path, dumped[path], want)
		}
	}
}

func preparePrefix(t *testing.T) *wine.Prefix {
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
	return prefix
}

func install(t *testing.T, from, to string) {
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

func runContainerd(t *testing.T, prefix *wine.Prefix, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := prefix.Command(ctx, `C:\containerd.exe`, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("containerd %v: %v\n%s", args, err, stderr.String())
	}
	return out
}
