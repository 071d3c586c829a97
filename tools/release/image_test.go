package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/swdt-dev/swdt/tools/release/payload"
)

// testImage unpacks the layout, lets the library that registries are tested with validate it, and looks
// into the image for each processor.
func testImage(t *testing.T, dist string) {
	folder := t.TempDir()
	for reader := tar.NewReader(bytes.NewReader(read(t, dist, "swdt_1.4.0_image.tar"))); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	// The version names one index, from which each processor chooses its image.
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() ||
		manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.4.0" {
		t.Fatalf("got the manifests %+v, want an index of the name 1.4.0", manifest.Manifests)
	}
	if index, err = index.ImageIndex(manifest.Manifests[0].Digest); err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, descriptor := range manifest.Manifests {
		platforms = append(platforms, descriptor.Platform.String())
		one, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		testOneImage(t, one, *descriptor.Platform)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Error(diff)
	}
}

func testOneImage(t *testing.T, one v1.Image, platform v1.Platform) {
	config, err := one.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	// The time is that of the commit, in the configuration and in the layer: no clock was read.
	at := time.Unix(1_800_000_000, 0).UTC()
	times := []time.Time{config.Created.Time}
	for _, history := range config.History {
		times = append(times, history.Created.Time)
	}
	files := map[string]fs.FileMode{}
	var roots []byte
	for reader := tar.NewReader(mutate.Extract(one)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = header.FileInfo().Mode()
		times = append(times, header.ModTime)
		if header.Name == "etc/ssl/certs/ca-certificates.crt" {
			if roots, err = io.ReadAll(reader); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, found := range times {
		if !found.Equal(at) {
			t.Errorf("got the time %v, want %v", found, at)
		}
	}
	if diff := cmp.Diff(map[string]fs.FileMode{
		"usr/bin/swdt": payload.ModeProgram, "usr/share/doc/swdt/LICENSE": payload.ModeText,
		"usr/share/doc/swdt/THIRD_PARTY_NOTICES": payload.ModeText,
		"etc/ssl/certs/ca-certificates.crt":      payload.ModeText, "tmp": payload.ModeShared,
	}, files); diff != "" {
		t.Error(diff)
	}
	if config.Config.User != "65532:65532" || config.OS != platform.OS || config.Architecture != platform.Architecture {
		text, _ := json.Marshal(config)
		t.Errorf("got the configuration %s of %v", text, platform)
	}
	// Without roots, every download with https would fail in the image.
	if !x509.NewCertPool().AppendCertsFromPEM(roots) || bytes.Count(roots, []byte("BEGIN CERTIFICATE")) < 100 {
		t.Errorf("%d bytes of root certificates hold fewer than a hundred, or none", len(roots))
	}
}
