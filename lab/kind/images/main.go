// Command images writes container images as one archive, which `ctr images import` reads:
//
//	images OUTPUT.tar FOLDER…
//
// A folder has the image's files in root/, and image.json:
//
//	{"names": ["registry.k8s.io/pause:3.10"], "entrypoint": ["/pause"]}
//
// Each image has one layer. Owners and times are not recorded, so that equal files make
// equal images.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: images OUTPUT.tar FOLDER…")
	}
	all := map[name.Reference]v1.Image{}
	for _, folder := range args[1:] {
		if err := add(all, folder); err != nil {
			return fmt.Errorf("image of %s: %w", folder, err)
		}
	}
	return tarball.MultiRefWriteToFile(args[0], all)
}

// description is the content of image.json.
type description struct {
	Names      []string `json:"names"`
	Entrypoint []string `json:"entrypoint"`
}

// add makes the image of a folder, and adds it under each of its names.
func add(all map[name.Reference]v1.Image, folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "image.json"))
	if err != nil {
		return err
	}
	var wanted description
	if err := json.Unmarshal(text, &wanted); err != nil {
		return fmt.Errorf("image.json: %w", err)
	}
	image, err := build(filepath.Join(folder, "root"), wanted.Entrypoint)
	if err != nil {
		return err
	}
	for _, text := range wanted.Names {
		reference, err := name.NewTag(text, name.StrictValidation)
		if err != nil {
			return err
		}
		all[reference] = image
	}
	return nil
}

func build(root string, entrypoint []string) (v1.Image, error) {
	packed, err := pack(root)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed)), nil
	})
	if err != nil {
		return nil, err
	}
	base, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", Config: v1.Config{Entrypoint: entrypoint},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(base, layer)
}

func pack(root string) ([]byte, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		return packOne(w, root, path, entry)
	})
	if err != nil {
		return nil, err
	}
	return packed.Bytes(), w.Close()
}

func packOne(w *tar.Writer, root, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	*header = tar.Header{
		Typeflag: header.Typeflag, Name: filepath.ToSlash(relative), Linkname: header.Linkname,
		Mode: header.Mode, Size: header.Size,
	}
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w, file)
	return err
}
