package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
)

const version = "v1.4.0"

// built makes the layouts of a clone in which small files stand for the programs.
func built(t *testing.T, args ...string) string {
	t.Helper()
	clone := t.TempDir()
	for file, content := range map[string]string{
		"LICENSE": "licence", "THIRD_PARTY_NOTICES": "notices",
		"bin/fleet/swdt-controller-linux-amd64": "amd64", "bin/fleet/swdt-controller-linux-arm64": "arm64",
		"bin/fleet/swdt-node.exe": "MZ",
	} {
		path := filepath.Join(clone, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(clone, "images")
	all := append([]string{"build", "-version", version, "-commit", "0123", "-time", "1800000000", "-out", out,
		"-repository", clone, "-bin", filepath.Join(clone, "bin")}, args...)
	if err := run(all, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out
}

// contents returns all files below a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, path))
		all[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTwoBuildsAreEqual(t *testing.T) {
	one := contents(t, built(t))
	t.Setenv("TZ", "Pacific/Auckland")
	if diff := cmp.Diff(one, contents(t, built(t))); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(one, contents(t, built(t, "-time", "1800000002"))) {
		t.Error("images with another time are equal, so equality proves nothing")
	}
}

// ORAS reads the layouts, and finds every blob under its digest and with its size.
func TestLayoutsAreReadByORAS(t *testing.T) {
	out := built(t)
	for _, name := range []string{controller, node} {
		store, err := oci.NewFromFS(t.Context(), os.DirFS(filepath.Join(out, name)))
		if err != nil {
			t.Fatal(err)
		}
		descriptor, err := only(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		copied, err := oras.Copy(t.Context(), store, version, memory.New(), version, oras.DefaultCopyOptions)
		if err != nil || copied.Digest.String() != descriptor.Digest.String() {
			t.Errorf("%s: copied %v, %v; want %v", name, copied, err, descriptor.Digest)
		}
	}
}

// pushed pushes both layouts into a registry and returns what that serves, with references by digest.
func pushed(t *testing.T) (controllers v1.ImageIndex, nodes v1.Image) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	out := built(t)
	served := func(layout string) *remote.Descriptor {
		var printed bytes.Buffer
		if err := run([]string{"push", filepath.Join(out, layout), host + "/team/" + layout + ":v1"}, &printed); err != nil {
			t.Fatal(err)
		}
		reference, err := name.ParseReference(strings.TrimSpace(printed.String()))
		if err != nil {
			t.Fatal(err)
		}
		found, err := remote.Get(reference)
		if err != nil {
			t.Fatal(err)
		}
		tagged, err := remote.Get(reference.Context().Tag("v1"))
		if err != nil || tagged.Digest != found.Digest {
			t.Fatalf("the tag has %v, %v; want %v", tagged, err, found.Digest)
		}
		return found
	}
	controllers, err := served(controller).ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	nodes, err = served(node).Image()
	if err != nil {
		t.Fatal(err)
	}
	return controllers, nodes
}

func TestImageOfTheController(t *testing.T) {
	index, _ := pushed(t)
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range manifest.Manifests {
		one, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := one.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		// The manifest of the Deployment runs it as this account, with a file system that cannot be written.
		if config.Config.User != "65532:65532" || config.Architecture != d.Platform.Architecture {
			t.Errorf("%s: the configuration is %+v", d.Platform, config)
		}
		files := filesOf(t, one)
		got[d.Platform.String()] = files[strings.TrimPrefix(config.Config.Entrypoint[0], "/")].content
	}
	if diff := cmp.Diff(map[string]string{"linux/amd64": "amd64", "linux/arm64": "arm64"}, got); diff != "" {
		t.Error(diff)
	}
}

// containerd takes the image on each version of Windows only if nothing names one.
func TestImageOfTheNodes(t *testing.T) {
	_, image := pushed(t)
	if err := validate.Image(image); err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "windows" || config.Architecture != "amd64" || config.OSVersion != "" || len(config.OSFeatures) > 0 {
		t.Errorf("the configuration is for %s/%s %q %v", config.OS, config.Architecture, config.OSVersion, config.OSFeatures)
	}
	files := filesOf(t, image)
	if f := files["Files/swdt-node.exe"]; f.content != "MZ" || f.records["MSWINDOWS.fileattr"] != "32" {
		t.Errorf("the program is %+v", f)
	}
	for _, hive := range []string{"DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"} {
		if f := files["Files/Windows/System32/config/"+hive]; !strings.HasPrefix(f.content, "regf") {
			t.Errorf("%s has %d bytes, want a hive", hive, len(f.content))
		}
	}
	if _, there := files["Files/LICENSE"]; !there {
		t.Error("there is no licence")
	}
}

type entry struct {
	content string
	records map[string]string
}

func filesOf(t *testing.T, image v1.Image) map[string]entry {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	unpacked, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()
	all := map[string]entry{}
	folders := map[string]bool{".": true}
	for reader := tar.NewReader(unpacked); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		all[header.Name] = entry{string(content), header.PAXRecords}
		if folders[header.Name] = true; config(t, image).OS == "windows" && !folders[filepath.Dir(header.Name)] {
			t.Errorf("%s comes before its folder", header.Name)
		}
	}
}

func config(t *testing.T, image v1.Image) *v1.ConfigFile {
	t.Helper()
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// want is the binary form of O:BAG:SYD:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;BU).
func TestDescriptor(t *testing.T) {
	const want = "AQAEkBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBMAAMAAAAAABQA/wEfAAEBAAAAAAAFEgAAAAAAGAD/" +
		"AR8AAQIAAAAAAAUgAAAAIAIAAAAAGACpABIAAQIAAAAAAAUgAAAAIQIAAA=="
	if got := base64.StdEncoding.EncodeToString(descriptor(0, fullControl, readAndRun)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBadInput(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	out := built(t)
	empty := t.TempDir()
	for _, args := range [][]string{
		{}, {"pull"}, {"push", out}, {"push", empty, host + "/a:1"}, {"push", filepath.Join(out, node), host + "/UPPER:1"},
		{"push", filepath.Join(out, node), host + "/a"}, {"push", filepath.Join(out, node), host + "/a:1"},
		{"build", "-version", version, "-time", "1800000000", "-repository", empty, "-bin", empty, "-out", empty},
		{"build", "-time", "1800000000"}, {"build", "-version", version},
	} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
