// Matcher chooses manifests of indexes with the code of one version of containerd, built for Windows. It reads cases from a
// file, a JSON value each, and writes a choice for each into another file:
//
//	matcher CASES CHOICES
//
// internal/format/imagefit compares the choices with its own.
package main

import (
	"bufio"
	_ "crypto/sha256" // of digests
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// testCase is an index, and the version of Windows of the host.
type testCase struct {
	Host  [3]uint32 `json:"host"`
	Index []entry   `json:"index"`
}

// entry is a manifest of an index.
type entry struct {
	Platform *ocispec.Platform `json:"platform"` // nil: the index names none
	Config   ocispec.Platform  `json:"config"`
}

// choice holds the manifests that containerd takes and fetches. The numbers are places in the index.
type choice struct {
	Taken  int   `json:"taken"` // -1: none
	Pulled []int `json:"pulled"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() (err error) {
	if len(os.Args) != 3 {
		return errors.New("usage: matcher CASES CHOICES")
	}
	in, err := os.Open(os.Args[1])
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(os.Args[2])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buffered := bufio.NewWriter(out)
	decoder, encoder := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(buffered)
	for {
		var c testCase
		if err := decoder.Decode(&c); errors.Is(err, io.EOF) {
			return buffered.Flush()
		} else if err != nil {
			return err
		}
		if err := setHost(c.Host); err != nil {
			return err
		}
		made, err := choose(c.Index)
		if err != nil {
			return err
		}
		if err := encoder.Encode(made); err != nil {
			return err
		}
	}
}

// image is an index with its manifests and configurations, in memory.
type image struct {
	blobs map[digest.Digest][]byte
	index ocispec.Descriptor
	// entries are the descriptors of the manifests, in the order of the index.
	entries []ocispec.Descriptor
}

// newImage makes the image of a case. Each manifest has another configuration, so that no two have the same digest.
func newImage(index []entry) (*image, error) {
	i := &image{blobs: map[digest.Digest][]byte{}}
	for at, e := range index {
		config, err := i.put(ocispec.MediaTypeImageConfig, struct {
			ocispec.Platform
			Author string `json:"author"`
		}{e.Config, fmt.Sprint(at)})
		if err != nil {
			return nil, err
		}
		manifest, err := i.put(ocispec.MediaTypeImageManifest, map[string]any{"schemaVersion": 2,
			"mediaType": ocispec.MediaTypeImageManifest, "config": config, "layers": []ocispec.Descriptor{}})
		if err != nil {
			return nil, err
		}
		manifest.Platform = e.Platform
		i.entries = append(i.entries, manifest)
	}
	var err error
	i.index, err = i.put(ocispec.MediaTypeImageIndex, map[string]any{"schemaVersion": 2,
		"mediaType": ocispec.MediaTypeImageIndex, "manifests": i.entries})
	return i, err
}

func (i *image) put(mediaType string, value any) (ocispec.Descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	d := digest.FromBytes(content)
	i.blobs[d] = content
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}, nil
}

// places returns the places of manifests in the index.
func (i *image) places(all []ocispec.Descriptor) []int {
	places := []int{}
	for at, e := range i.entries {
		for _, one := range all {
			if one.Digest == e.Digest {
				places = append(places, at)
			}
		}
	}
	return places
}

// placeOf returns the place of the manifest with a configuration.
func (i *image) placeOf(config ocispec.Descriptor) (int, error) {
	for at, e := range i.entries {
		var m ocispec.Manifest
		if err := json.Unmarshal(i.blobs[e.Digest], &m); err != nil {
			return 0, err
		}
		if m.Config.Digest == config.Digest {
			return at, nil
		}
	}
	return 0, errors.New("the configuration is that of no manifest")
}

// without returns the image without the manifests, and their configurations, that were not pulled.
func (i *image) without(pulled []int) (*image, error) {
	kept := map[int]bool{}
	for _, at := range pulled {
		kept[at] = true
	}
	left := &image{blobs: map[digest.Digest][]byte{i.index.Digest: i.blobs[i.index.Digest]}, index: i.index, entries: i.entries}
	for at, e := range i.entries {
		if !kept[at] {
			continue
		}
		var m ocispec.Manifest
		if err := json.Unmarshal(i.blobs[e.Digest], &m); err != nil {
			return nil, err
		}
		left.blobs[e.Digest], left.blobs[m.Config.Digest] = i.blobs[e.Digest], i.blobs[m.Config.Digest]
	}
	return left, nil
}
