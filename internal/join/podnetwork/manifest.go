package podnetwork

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Manifest is a manifest to use instead of the manifest of a release.
type Manifest struct {
	Source string // path or URL
	SHA256 string // hexadecimal; required if Source is a URL
}

// UnverifiedError reports a manifest from the network whose hash is not known. A manifest can do
// everything in the cluster, so swdt uses no manifest from the network that it cannot verify.
type UnverifiedError struct{ Source string }

func (e *UnverifiedError) Error() string {
	return fmt.Sprintf("the hash of %s is not known: verify the file and pass its hash with --sha256, or download it, "+
		"read it and name the file with --manifest", e.Source)
}

// MismatchError reports a manifest whose hash is not the expected hash.
type MismatchError struct{ Source, Got, Want string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, but %s is wanted: do not use the file; find out who changed it, or correct "+
		"--sha256", e.Source, e.Got, e.Want)
}

// manifests returns the manifests to obtain: the manifests that the user names, or the manifest of
// the version.
func (o Options) manifests() ([]Manifest, error) {
	all := o.Manifests
	if len(all) == 0 {
		release := cni.ReleaseOf(o.Settings.Network, o.Version)
		all = []Manifest{{Source: release.URL, SHA256: release.SHA256}}
		if o.SHA256 != "" {
			all[0].SHA256 = o.SHA256
		}
	}
	for _, m := range all {
		if m.SHA256 == "" && !source.IsLocal(m.Source) {
			return nil, &UnverifiedError{m.Source}
		}
	}
	return all, nil
}

// CheckManifests returns an error if a manifest of the options cannot be used: if its hash is not
// known, or if a file of this machine is missing, has another hash, or has the manifest of another
// program. It contacts nothing, and does not look at manifests from the network.
func (o Options) CheckManifests(ctx context.Context) error {
	manifests, err := o.manifests()
	if err != nil {
		return err
	}
	for _, m := range manifests {
		if !source.IsLocal(m.Source) {
			return nil
		}
	}
	_, err = o.obtain(ctx, ui.Discard{})
	return err
}

// obtain returns the objects of the manifests.
func (o Options) obtain(ctx context.Context, r ui.Reporter) ([]*unstructured.Unstructured, error) {
	manifests, err := o.manifests()
	if err != nil {
		return nil, err
	}
	store := artifact.NewStore(o.Store)
	var all []*unstructured.Unstructured
	for _, m := range manifests {
		r.Step("obtaining %s", m.Source)
		content, err := m.read(ctx, store, o.Mirror, r)
		if err != nil {
			return nil, err
		}
		objects, err := cni.Parse(m.Source, content)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	check := cni.CheckCalico
	if o.Settings.Network == cni.Flannel {
		check = cni.CheckFlannel
	}
	return all, check(manifests[0].Source, all)
}

// read returns the content of a manifest. If the hash of the manifest is known, read has verified
// it on the returned bytes.
func (m Manifest) read(ctx context.Context, store *artifact.Store, mirror string, r ui.Reporter) ([]byte, error) {
	wish := artifact.Wish{Component: "manifest", Source: m.Source, SHA256: m.SHA256, Mirror: mirror, Field: "--manifest"}
	file, err := store.Plain(ctx, wish, r)
	var mismatch *source.HashMismatchError
	switch {
	case errors.As(err, &mismatch):
		return nil, &MismatchError{Source: m.Source, Got: mismatch.Got, Want: mismatch.Want}
	case err != nil:
		return nil, fmt.Errorf("obtain the manifest: %w", err)
	case file.Size > cni.MaxManifest:
		return nil, &cni.ManifestError{From: m.Source, What: fmt.Sprintf("it has more than %d MB", cni.MaxManifest>>20)}
	}
	content, err := os.ReadFile(file.Path)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); m.SHA256 != "" && got != strings.ToLower(m.SHA256) {
		return nil, &MismatchError{Source: m.Source, Got: got, Want: m.SHA256}
	}
	r.Debug("%s has sha256 %s", m.Source, hex.EncodeToString(sum[:]))
	return content, nil
}

// IsSHA256 reports whether a text is a SHA-256 in hexadecimal digits.
func IsSHA256(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}
