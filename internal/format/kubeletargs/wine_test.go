package kubeletargs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/sandbox/wine/winetest"
)

// The real kubelet.exe parses the flags, which it does before it handles
// --version.
func TestRealKubeletKnowsTheFlags(t *testing.T) {
	if testing.Short() {
		t.Skip("runs kubelet under Wine")
	}
	const version = "1.36.3"
	kubelet := filepath.Join(labFolder(t), "kubelet-"+version+".exe")
	if _, err := os.Stat(kubelet); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is missing: run lab/build.sh kubelet", kubelet)
	}
	prefix := winetest.Prepare(t)
	winetest.Install(t, kubelet, filepath.Join(prefix.DriveC(), "kubelet.exe"))

	wish := full(version)
	wish.ConfigDropIn = true
	line, err := kubeletargs.CommandLine(wish)
	if err != nil {
		t.Fatal(err)
	}
	args := commandline.Split(line)[3:] // without the log runner, its flag and kubelet
	if args[0] != "--windows-service" {
		t.Fatalf("unexpected %s", line)
	}
	if out, err := run(t, prefix, args...); err != nil || !strings.Contains(out, "\nKubernetes v") {
		t.Errorf("%s\n%v\n%s", line, err, out)
	}
	// An unknown flag would have been reported, as this one is.
	if out, err := run(t, prefix, append(args, "--pod-infra-container-image=x")...); err == nil ||
		!strings.Contains(out, "unknown flag: --pod-infra-container-image") {
		t.Errorf("a flag that is gone: %v\n%s", err, out)
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

// run returns kubelet's output with these arguments and --version.
func run(t *testing.T, prefix *wine.Prefix, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := prefix.Command(ctx, `C:\kubelet.exe`, append(args, "--version")...).CombinedOutput()
	return string(out), err
}
