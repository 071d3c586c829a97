// Package binaryset is a set of binaries (kubelet.exe, containerd.exe, …) as one artifact in an OCI
// registry: its manifest, and how a node or swdt fetches a binary from it.
//
// Each binary is a layer, compressed with zstd. Patches are further layers: each makes the binary
// from an earlier build (format: package delta), so that a node that has this build fetches some
// hundred kilobytes. The manifest names the SHA-256 of every uncompressed binary, so the digest of
// the manifest determines all content, and the same binaries and patches result in the same digest.
//
//   - set.go: the set, and its checks
//   - manifest.go: the set as an OCI manifest
//   - fetch.go: a binary out of a registry, as a whole or by a patch
//   - unpack.go: layers to files
//   - errors.go: why a set or a binary is refused
package binaryset

import (
	"path"
	"strings"
	"unicode"

	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// Set is a set of binaries.
type Set struct{ Binaries []Binary }

// Binary is one binary of a set.
type Binary struct {
	Component   string // the name of the component, such as kubelet; unique in the set
	Title       string // the name of the file, such as kubelet.exe
	Version     string // may be empty
	Destination string // where the publisher's nodes have the file; a hint, may be empty
	SHA256      string // of the uncompressed binary, hexadecimal
	Size        int64  // of the uncompressed binary, in bytes
	Layer       distribution.Blob
	Patches     []Patch
}

// Patch makes a binary from an earlier build of it.
type Patch struct {
	Base  string // SHA-256 of the earlier build, hexadecimal
	Layer distribution.Blob
}

// Find returns the binary of a component. As with services of Windows, case does not matter. The
// error is a *ComponentError if the set does not have it.
func (s Set) Find(component string) (Binary, error) {
	var names []string
	for _, b := range s.Binaries {
		if strings.EqualFold(b.Component, component) {
			return b, nil
		}
		names = append(names, b.Component)
	}
	return Binary{}, &ComponentError{Component: component, Has: names}
}

// check returns the reason why a set is not valid, or "".
func (s Set) check() string {
	if len(s.Binaries) == 0 {
		return "it has no binaries"
	}
	seen := map[string]bool{}
	for _, b := range s.Binaries {
		if problem := b.check(); problem != "" {
			return problem
		}
		name := strings.ToLower(b.Component)
		if seen[name] {
			return "it has two binaries of one component"
		}
		seen[name] = true
	}
	return ""
}

func (b Binary) check() string {
	switch {
	case !isText(b.Component, 1):
		return "the name of a component is not valid"
	case !isText(b.Title, 1) || path.Base(b.Title) != b.Title || strings.ContainsAny(b.Title, `/\:`) ||
		strings.Trim(b.Title, ". ") == "":
		return "the name of a file is not valid"
	case !isText(b.Version, 0) || !isText(b.Destination, 0):
		return "a version or destination is not valid"
	case !isSHA256(b.SHA256) || b.Size <= 0:
		return "the hash or the size of a binary is not valid"
	case !isBlob(b.Layer):
		return "a layer is not valid"
	}
	seen := map[string]bool{b.SHA256: true} // a patch from the binary itself is none
	for _, p := range b.Patches {
		if !isSHA256(p.Base) || !isBlob(p.Layer) || seen[p.Base] {
			return "a patch is not valid"
		}
		seen[p.Base] = true
	}
	return ""
}

// isText reports whether text has at least minimum and at most 255 bytes, all printable.
func isText(text string, minimum int) bool {
	return minimum <= len(text) && len(text) <= 255 && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

func isSHA256(text string) bool { return distribution.IsDigest("sha256:" + text) }

func isBlob(b distribution.Blob) bool { return distribution.IsDigest(b.Digest) && b.Size > 0 }
