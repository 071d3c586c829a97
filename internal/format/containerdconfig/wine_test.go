package containerdconfig_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/sandbox/wine/winetest"
	"github.com/swdt-dev/swdt/internal/testing/gobuild"
)

// The real containerd.exe generates the files in testdata, parses the merged
// configuration as intended, and runs with it.
func TestRealContainerdReadsWhatIsMerged(t *testing.T) {
	if testing.Short() {
		t.Skip("runs containerd under Wine")
	}
	lab := labFolder(t)
	for _, containerd := range []string{"1.6.27", "1.7.12", "2.4.2"} {
		t.Run(containerd, func(t *testing.T) {
			exe := filepath.Join(lab, "containerd-"+containerd+".exe")
			if _, err := os.Stat(exe); errors.Is(err, fs.ErrNotExist) {
				t.Skipf("%s is missing: run `lab/build.sh containerds`", exe)
			}
			prefix := winetest.Prepare(t)
			winetest.Install(t, exe, filepath.Join(prefix.DriveC(), "containerd.exe"))
			readByRealContainerd(t, prefix, containerd)
			runsWithIt(t, prefix)
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

func readByRealContainerd(t *testing.T, prefix *wine.Prefix, containerd string) {
	run := func(args ...string) []byte { return runContainerd(t, prefix, args...) }

	generated := run("config", "default")
	want, got := flat(t, defaults(t, containerd)), flat(t, generated)
	const machine = "plugins/io.containerd.runtime.v2.task/platforms" // the prefix's Windows build
	delete(want, machine)
	delete(got, machine)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("testdata is another containerd's, -testdata +generated:\n%s", diff)
	}
	merged, _, err := containerdconfig.Merge(generated, wishes())
	if err != nil {
		t.Fatal(err)
	}
	encoded := filepath.Join(prefix.DriveC(), "encoded.toml")
	for _, encoding := range []windowstext.Encoding{windowstext.UTF8, windowstext.MarkedUTF8, windowstext.UTF16LE} {
		file := windowstext.Text{Encoding: encoding}.Encode("version = 2\n")
		if err := os.WriteFile(encoded, file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := containerdOutput(t, prefix, "--config", `C:\encoded.toml`, "config", "dump")
		refusal := containerdconfig.Refuse(file, containerdconfig.MajorOf(generated))
		if (err == nil) != (refusal == nil) {
			t.Errorf("%s: containerd answers %v, and swdt expects %v", encoding, err, refusal)
		}
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

// runsWithIt starts containerd with a merged configuration and reads the
// effective configuration over CRI.
func runsWithIt(t *testing.T, prefix *wine.Prefix) {
	const pipe = `\\.\pipe\another`
	merged, _, err := containerdconfig.Merge(runContainerd(t, prefix, "config", "default"), containerdconfig.Wishes{
		PauseImage: "registry.example/pause:9", CNIBinDir: `c:\opt\cni\bin`, CNIConfDir: `c:\etc\cni\net.d`,
		LogLevel: "debug", Root: `C:\data\root`, State: `C:\data\state`, Pipe: pipe,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(prefix.DriveC(), "running.toml"), merged, 0o600); err != nil {
		t.Fatal(err)
	}
	gobuild.BuildAs(t, gobuild.Program{Package: "./testdata/cristatus", Windows: true},
		filepath.Join(prefix.DriveC(), "cristatus.exe"))
	var story bytes.Buffer
	containerd := prefix.Command(t.Context(), `C:\containerd.exe`, "--config", `C:\running.toml`)
	containerd.Stderr, containerd.WaitDelay = &story, 10*time.Second
	if err := containerd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var complaint bytes.Buffer
	witness := prefix.Command(ctx, `C:\cristatus.exe`, pipe)
	witness.Stderr, witness.WaitDelay = &complaint, 10*time.Second
	reply, err := witness.Output()
	_ = containerd.Process.Kill()
	_ = containerd.Wait() // it was killed
	if err != nil {
		t.Fatalf("%v %s\n%s", err, complaint.String(), story.String())
	}
	var status runtimev1.StatusResponse
	if err := proto.Unmarshal(reply, &status); err != nil {
		t.Fatal(err)
	}
	var config struct {
		SandboxImage string // 1.x
		CNI          struct {
			BinDir  string   // 2.0 and older
			BinDirs []string // newer
			ConfDir string
		}
	}
	if err := json.Unmarshal([]byte(status.GetInfo()["config"]), &config); err != nil {
		t.Fatalf("%v in %s", err, &status)
	}
	if dirs := append(config.CNI.BinDirs, config.CNI.BinDir); dirs[0] != `c:\opt\cni\bin` ||
		config.CNI.ConfDir != `c:\etc\cni\net.d` {
		t.Errorf("CRI says that the CNI folders are %+v", config.CNI)
	}
	// 2.x does not report its images' configuration; it is in the dump above.
	if config.SandboxImage != "registry.example/pause:9" && len(config.CNI.BinDirs) == 0 {
		t.Errorf("CRI says that the pause image is %q", config.SandboxImage)
	}
	if !strings.Contains(story.String(), "level=debug") {
		t.Errorf("nothing in the log is of level debug:\n%s", story.String())
	}
	if _, err := os.Stat(filepath.Join(prefix.DriveC(), "data", "root", "io.containerd.metadata.v1.bolt")); err != nil {
		t.Errorf("containerd's root is elsewhere: %v", err)
	}
}

func runContainerd(t *testing.T, prefix *wine.Prefix, args ...string) []byte {
	t.Helper()
	out, err := containerdOutput(t, prefix, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func containerdOutput(t *testing.T, prefix *wine.Prefix, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := prefix.Command(ctx, `C:\containerd.exe`, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("containerd %v: %w\n%s", args, err, stderr.String())
	}
	return out, nil
}
