package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A pull finds everything by its digest, and a layer matches its digest and the image's
// own list of layers.
func TestAnImageIsPulled(t *testing.T) {
	images := newRegistry()
	if err := images.add("burn", []file{{program, []byte("a program")}, {"Windows/System32/x.exe", nil}},
		[]string{"--cores", "0"}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(images)
	defer server.Close()
	get := func(path string) []byte {
		t.Helper()
		answer, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", path, err)
		case answer.StatusCode != http.StatusOK:
			t.Fatalf("%s: answer.StatusCode is %v, want %v", path, answer.StatusCode, http.StatusOK)
		}
		if got := answer.Header.Get("Docker-Content-Digest"); got != digest(body) {
			t.Errorf("%s has digest %s, said to be %s", path, digest(body), got)
		}
		return body
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	if err := json.Unmarshal(get("/v2/burn/manifests/"+firstTag), &manifest); err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("manifest %+v, %v", manifest, err)
	}
	var config struct {
		OSVersion string `json:"os.version"`
		Config    struct{ Entrypoint []string }
		RootFS    struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(get("/v2/burn/blobs/"+manifest.Config.Digest), &config); err != nil {
		t.Fatal(err)
	}
	switch {
	case config.OSVersion != osVersion:
		t.Errorf("config.OSVersion is %v, want %v", config.OSVersion, osVersion)
	case len(config.Config.Entrypoint) != 3:
		t.Errorf("config.Config.Entrypoint has %d elements, want 3: %v", len(config.Config.Entrypoint),
			config.Config.Entrypoint)
	case config.RootFS.DiffIDs[0] != manifest.Layers[0].Digest:
		t.Errorf("config.RootFS.DiffIDs[0] is %v, want %v", config.RootFS.DiffIDs[0], manifest.Layers[0].Digest)
	}
	layer := tar.NewReader(bytes.NewReader(get("/v2/burn/blobs/" + manifest.Layers[0].Digest)))
	for {
		header, err := layer.Next()
		if err != nil {
			t.Fatalf("the program is not in the layer: %v", err)
		}
		if header.Name == "Files/"+program {
			break
		}
	}
	if content, err := io.ReadAll(layer); err != nil || string(content) != "a program" {
		t.Errorf("the program: %q, %v", content, err)
	}
}

func TestMissingImagesAreNotFound(t *testing.T) {
	server := httptest.NewServer(newRegistry())
	defer server.Close()
	for _, path := range []string{"/v2/burn/manifests/1", "/v2/burn/blobs/sha256:0", "/"} {
		answer, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: answer.StatusCode is %v, want %v", path, answer.StatusCode, http.StatusNotFound)
		}
	}
}
