package diag

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// largestManifest is the largest size of a manifest in bytes.
const largestManifest = 64 << 20

// NoBundleError reports a file that is not a bundle, or a bundle that this swdt cannot read.
type NoBundleError struct {
	Path string
	Why  string
	Err  error
}

func (e *NoBundleError) Error() string {
	text := e.Path + " is not a bundle of swdt diag: " + e.Why
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}
func (e *NoBundleError) Unwrap() error { return e.Err }

// Bundle is an existing bundle. Table and Document read the file again, and unpack nothing to the
// disk.
type Bundle struct {
	Path     string
	Manifest Manifest
}

// Open reads a bundle's manifest.
func Open(file string) (*Bundle, error) {
	b := &Bundle{Path: file}
	err := b.read(manifestName, func(r io.Reader) error {
		return json.NewDecoder(io.LimitReader(r, largestManifest)).Decode(&b.Manifest)
	})
	var unlike *NoBundleError
	switch {
	case errors.As(err, &unlike) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission):
		return nil, err
	case err != nil:
		return nil, &NoBundleError{file, "its manifest cannot be read", err}
	case b.Manifest.Format != Format:
		return nil, &NoBundleError{Path: file, Why: fmt.Sprintf("its format is %q, and this swdt reads %q",
			b.Manifest.Format, Format)}
	}
	return b, nil
}

// Node returns the record of one node.
func (b *Bundle) Node(name string) (NodeRecord, error) {
	var names []string
	for _, n := range b.Manifest.Nodes {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return NodeRecord{}, fmt.Errorf("%s has no node %q; it has %s", b.Path, name, strings.Join(names, ", "))
}

// Table writes a node's table as text.
func (b *Bundle) Table(n NodeRecord, name string, w io.Writer) error {
	return b.table(n, name, "txt", func(r io.Reader) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// Document returns the document of a node's table.
func (b *Bundle) Document(n NodeRecord, name string) (document json.RawMessage, err error) {
	err = b.table(n, name, "json", func(r io.Reader) error {
		return json.NewDecoder(io.LimitReader(r, largestTable)).Decode(&document)
	})
	return document, err
}

func (b *Bundle) table(n NodeRecord, name, kind string, take func(io.Reader) error) error {
	if !slices.Contains(n.Tables(), name) {
		if len(n.Tables()) == 0 {
			return fmt.Errorf("%s has no tables of %s: %s", b.Path, n.Name, n.Error)
		}
		return fmt.Errorf("%s has no table %q of %s; it has %s", b.Path, name, n.Name, strings.Join(n.Tables(), ", "))
	}
	return b.read(n.table(name, kind), take)
}

// read finds a file of the bundle and passes the file's content to the given function.
func (b *Bundle) read(name string, take func(io.Reader) error) error {
	found := false
	err := b.each(func(is string, content io.Reader) (bool, error) {
		if is != name {
			return true, nil
		}
		found = true
		return false, take(content)
	})
	if err == nil && !found {
		err = &NoBundleError{Path: b.Path, Why: "there is no " + name + " in it"}
	}
	return err
}

// each passes the files of the bundle to visit, in their order, until it returns false or an error. It rejects a bundle if
// one of the paths up to the last file leads out of the bundle's folder, since the user may unpack the bundle. Bundles of an
// earlier swdt have no folder.
func (b *Bundle) each(visit func(name string, content io.Reader) (more bool, err error)) error {
	file, err := os.Open(b.Path)
	if err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return &NoBundleError{b.Path, "it is not a gzip file", err}
	}
	tape, folder := tar.NewReader(unzipped), ""
	for first := true; ; first = false {
		header, err := tape.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &NoBundleError{b.Path, "it is damaged or incomplete", err}
		case header.Typeflag != tar.TypeReg || !stays(header.Name) || !strings.HasPrefix(header.Name, folder):
			return &NoBundleError{Path: b.Path,
				Why: fmt.Sprintf("it contains %q, which leads out of the bundle or is not a file", header.Name)}
		case first && (path.Base(header.Name) != manifestName || strings.Count(header.Name, "/") > 1):
			return &NoBundleError{Path: b.Path, Why: "its first file is not " + manifestName}
		case first:
			folder = strings.TrimSuffix(header.Name, manifestName)
		}
		name := strings.TrimPrefix(header.Name, folder)
		more, err := visit(name, tape)
		switch {
		case err != nil:
			return &NoBundleError{b.Path, name + " cannot be read", err}
		case !more:
			return nil
		}
	}
}

// stays reports whether a path stays in the folder in which the bundle is unpacked.
func stays(name string) bool {
	return name != "" && !path.IsAbs(name) && path.Clean(name) == name && name != ".." &&
		!strings.HasPrefix(name, "../") && !strings.ContainsAny(name, "\\:\x00")
}
