//go:build oracles

package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSkopeoReadsTheLayouts lets skopeo copy both layouts, with each blob verified, and read their configurations.
func TestSkopeoReadsTheLayouts(t *testing.T) {
	out := built(t)
	for _, layout := range []struct{ name, os, architecture string }{
		{controller, "linux", "amd64"}, {controller, "linux", "arm64"}, {node, "windows", "amd64"},
	} {
		source := "oci:" + filepath.Join(out, layout.name) + ":" + version
		skopeo(t, "copy", "--all", source, "oci:"+filepath.Join(t.TempDir(), "copy")+":"+version)
		text := skopeo(t, "--override-os", layout.os, "--override-arch", layout.architecture, "inspect", source)
		var image struct {
			Os, Architecture string
			Layers           []string
		}
		if err := json.Unmarshal([]byte(text), &image); err != nil {
			t.Fatal(err)
		}
		if image.Os != layout.os || image.Architecture != layout.architecture || len(image.Layers) == 0 {
			t.Errorf("%s for %s/%s is %+v", layout.name, layout.os, layout.architecture, image)
		}
	}
	t.Logf("%d images, all blobs verified", 3)
}

// skopeo runs skopeo, and returns its stdout.
func skopeo(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "skopeo", append([]string{"--insecure-policy"}, args...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("skopeo %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}
