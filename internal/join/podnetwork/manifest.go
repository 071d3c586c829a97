package podnetwork

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
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
type UnverifiedError struct {
	Source string
	More   []string // further manifests whose hashes are not known
}

func (e *UnverifiedError) Error() string {
	if len(e.More) > 0 {
		return fmt.Sprintf("the hashes of these files are not known: verify the files and pass their hashes with --sha256, "+
			"one for each in this order, or download them, read them and name the files with --manifest:\n  %s",
			strings.Join(append([]string{e.Source}, e.More...), "\n  "))
	}
	return fmt.Sprintf("the hash of %s is not known: verify the file and pass its hash with --sha256, or download it, "+
		"read it and name the file with --manifest", e.Source)
}

// MismatchError reports a manifest whose hash is not the expected hash.
type MismatchError struct{ Source, Got, Want string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, but %s is wanted: do not use the file; find out who changed it, or correct "+
		"--sha256", e.Source, e.Got, e.Want)
}

// parts are the parts of a network for which manifests are needed. Only Antrea has a manifest of its own
// for Windows nodes.
type parts struct{ linux, windows bool }

func (p parts) any() bool { return p.linux || p.windows }

// manifests returns the manifests to obtain: the manifests that the user names, or those of the version.
func (o Options) manifests(need parts) ([]Manifest, error) {
	all := o.Manifests
	if len(all) == 0 {
		all = o.released(need)
	}
	var unverified []string
	for _, m := range all {
		if m.SHA256 == "" && !source.IsLocal(m.Source) {
			unverified = append(unverified, m.Source)
		}
	}
	if len(unverified) > 0 {
		return nil, &UnverifiedError{Source: unverified[0], More: unverified[1:]}
	}
	return all, nil
}

// released returns the manifests of the version. If only the second one is needed, the first hash of the
// user may be its hash.
func (o Options) released(need parts) (all []Manifest) {
	release := cni.ReleaseOf(o.Settings.Network, o.Version, o.kubernetes)
	first, second := o.SHA256, o.WindowsSHA256
	if !need.linux && second == "" {
		second = first
	}
	if need.linux || release.WindowsURL == "" {
		all = append(all, Manifest{Source: release.URL, SHA256: cmp.Or(first, release.SHA256)})
	}
	if need.linux && release.CRDsURL != "" {
		all = append(all, Manifest{Source: release.CRDsURL, SHA256: cmp.Or(o.CRDSHA256, release.CRDsSHA256)})
	}
	if need.windows && release.WindowsURL != "" {
		all = append(all, Manifest{Source: release.WindowsURL, SHA256: cmp.Or(second, release.WindowsSHA256)})
	}
	return all
}

// CheckManifests returns an error if a manifest of the options cannot be used: if its hash is not
// known, or if a file of this machine is missing, has another hash, or has the manifest of another
// program. It contacts nothing, and does not look at manifests from the network.
func (o Options) CheckManifests(ctx context.Context) error {
	need := parts{linux: true, windows: true}
	manifests, err := o.manifests(need)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		if !source.IsLocal(m.Source) {
			return nil
		}
	}
	if o.Settings.Network == cni.Antrea { // the cluster may have the part of Linux
		need.linux = false
	}
	_, err = o.obtain(ctx, need, ui.Discard{})
	return err
}

// obtain returns the objects of the manifests, which have the needed parts.
func (o Options) obtain(ctx context.Context, need parts, r ui.Reporter) ([]*unstructured.Unstructured, error) {
	manifests, err := o.manifests(need)
	if err != nil {
		return nil, err
	}
	store := artifact.NewStore(o.Store)
	var (
		all     []*unstructured.Unstructured
		sources []string
	)
	for _, m := range manifests {
		r.Step("%s", m.obtaining(o.Mirror))
		content, from, err := m.read(ctx, store, o.Mirror, r)
		if err != nil {
			return nil, err
		}
		objects, err := cni.Parse(from, content)
		if err != nil {
			return nil, err
		}
		all, sources = append(all, objects...), append(sources, from)
	}
	return all, o.check(sources[0], all, need)
}

// check returns an error if the objects are not those of the network.
func (o Options) check(from string, all []*unstructured.Unstructured, need parts) error {
	switch o.Settings.Network {
	case cni.Flannel:
		return cni.CheckFlannel(from, all)
	case cni.Antrea:
		return cni.CheckAntrea(from, all, need.linux, need.windows)
	}
	return cni.CheckCalico(from, all)
}

// obtaining describes the begin of obtaining a manifest. A mirror has all that is from the network.
func (m Manifest) obtaining(mirror string) string {
	if mirror == "" || source.IsLocal(m.Source) {
		return "obtaining " + m.Source
	}
	return fmt.Sprintf("obtaining %s from the mirror", path.Base(m.Source))
}

// read returns the content of a manifest, and the path or URL that it is from: with a mirror, the place in the
// mirror. If the hash of the manifest is known, read has verified
// it on the returned bytes.
func (m Manifest) read(ctx context.Context, store *artifact.Store, mirror string, r ui.Reporter) (content []byte,
	from string, err error) {
	wish := artifact.Wish{Component: "manifest", Source: m.Source, SHA256: m.SHA256, Mirror: mirror, Field: "--manifest"}
	file, from, err := store.Plain(ctx, wish, r)
	var mismatch *source.HashMismatchError
	switch {
	case errors.As(err, &mismatch):
		return nil, "", &MismatchError{Source: mismatch.Name, Got: mismatch.Got, Want: mismatch.Want}
	case err != nil:
		return nil, "", fmt.Errorf("obtain the manifest: %w; or bring it to this machine and name the file with --manifest", err)
	case file.Size > cni.MaxManifest:
		return nil, "", &cni.ManifestError{From: from, What: fmt.Sprintf("it has more than %d MB", cni.MaxManifest>>20)}
	}
	content, err = os.ReadFile(file.Path)
	if err != nil {
		return nil, "", fmt.Errorf("read the manifest: %w", err)
	}
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); m.SHA256 != "" && got != strings.ToLower(m.SHA256) {
		return nil, "", &MismatchError{Source: from, Got: got, Want: m.SHA256}
	}
	r.Debug("%s has sha256 %s", from, hex.EncodeToString(sum[:]))
	return content, from, nil
}

// IsSHA256 reports whether a text is a SHA-256 in hexadecimal digits.
func IsSHA256(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}
