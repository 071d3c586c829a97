package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"

	// osVersion is the build that a Wine prefix reports.
	osVersion = "10.0.20348.2849"
	firstTag  = "1"
	program   = "program.exe"
)

// made returns the creation time of all images. It is constant, so that the same programs make
// the same images.
func made() time.Time { return time.Date(2024, 1, 20, 0, 0, 0, 0, time.UTC) }

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

// registry serves the parts of the OCI distribution API that a pull needs.
type registry struct {
	*http.ServeMux
	blobs     map[string][]byte // by digest
	manifests map[string][]byte // by NAME@TAG and NAME@DIGEST
}

func newRegistry() *registry {
	r := &registry{http.NewServeMux(), map[string][]byte{}, map[string][]byte{}}
	r.HandleFunc("GET /v2/{$}", func(http.ResponseWriter, *http.Request) {})
	r.HandleFunc("GET /v2/{name}/manifests/{reference}", func(w http.ResponseWriter, q *http.Request) {
		serve(w, q, manifestType, r.manifests[q.PathValue("name")+"@"+q.PathValue("reference")])
	})
	r.HandleFunc("GET /v2/{name}/blobs/{digest}", func(w http.ResponseWriter, q *http.Request) {
		serve(w, q, "application/octet-stream", r.blobs[q.PathValue("digest")])
	})
	return r
}

func serve(w http.ResponseWriter, q *http.Request, mediaType string, content []byte) {
	if content == nil {
		http.NotFound(w, q)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.Header().Set("Docker-Content-Digest", digest(content))
	if q.Method != http.MethodHead {
		_, _ = w.Write(content) // a client that has disconnected cannot read an error either
	}
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func (r *registry) blob(mediaType string, content []byte) descriptor {
	d := descriptor{mediaType, digest(content), len(content)}
	r.blobs[d.Digest] = content
	return d
}

// file is a file of an image, at its place on drive C:. The first one is the image's program.
type file struct {
	place   string
	content []byte
}

// add adds an image NAME or NAME:TAG of a program with other files, and the program's first arguments.
func (r *registry) add(image string, files []file, arguments []string) error {
	name, tag, hasTag := strings.Cut(image, ":")
	if !hasTag {
		tag = firstTag
	}
	layer, err := layerOf(files)
	if err != nil {
		return err
	}
	layerBlob := r.blob(layerType, layer)
	config, err := json.Marshal(map[string]any{
		"created": made(), "architecture": "amd64", "os": "windows", "os.version": osVersion,
		"config": map[string]any{"Entrypoint": append([]string{`C:\` + program}, arguments...)},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerBlob.Digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": r.blob(configType, config), "layers": []descriptor{layerBlob},
	})
	if err != nil {
		return err
	}
	r.manifests[name+"@"+tag] = manifest
	r.manifests[name+"@"+digest(manifest)] = manifest
	return nil
}

// layerOf returns a layer in the form of Windows' layers: the files of the container's
// drive C: are in the folder Files.
func layerOf(files []file) ([]byte, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	folders := map[string]bool{}
	for _, f := range files {
		name := path.Join("Files", f.place)
		for i, c := range name {
			if c == '/' && !folders[name[:i]] {
				folders[name[:i]] = true
				err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[:i+1], Mode: 0o755, ModTime: made()})
				if err != nil {
					return nil, err
				}
			}
		}
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, ModTime: made(),
			Size: int64(len(f.content))})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return layer.Bytes(), nil
}
