package imagecheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// Image is an image as a registry has it.
type Image struct {
	Name   string // as it was asked for
	Digest string // of the index, or of the only manifest
	// Manifests are those of the index in its order, or the only one.
	Manifests []Manifest
	// Plain reports that the image has no index. containerd takes its manifest whatever the platform is.
	Plain bool

	repository *distribution.Repository
}

// Manifest is a manifest of an image for one platform.
type Manifest struct {
	Digest   string
	Platform *imagefit.Platform // nil: the index names none
}

// Layers are the layers of a manifest, and the platform in its configuration.
type Layers struct {
	All    []distribution.Blob
	config distribution.Blob
}

// The bounds on what a registry sends, besides the size of a manifest (1 MiB). Published images have at most 30 manifests
// and 127 layers.
const (
	mostManifests = 1_000
	mostLayers    = 1_000
	longestText   = 200     // bytes of a platform's text
	largestLayer  = 1 << 40 // bytes
	largestConfig = 1 << 20 // bytes
)

// document is a manifest or an index, with the fields that a check needs.
type document struct {
	SchemaVersion int          `json:"schemaVersion"`
	Manifests     []descriptor `json:"manifests"`
	Config        *descriptor  `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type descriptor struct {
	Digest   string             `json:"digest"`
	Size     int64              `json:"size"`
	Platform *imagefit.Platform `json:"platform"`
}

// Open reads an image's index, or its only manifest.
func (r *Registry) Open(ctx context.Context, name string) (*Image, error) {
	at, err := r.locate(name)
	if err != nil {
		return nil, err
	}
	repository := distribution.Open(at, distribution.Options{Credential: r.Credential, HTTP: r.HTTP})
	content, digest, err := repository.ImageManifest(ctx)
	if err != nil {
		return nil, missing(repository.Reference(), err)
	}
	i := &Image{Name: name, Digest: digest, repository: repository}
	d, err := parse(content)
	if err != nil {
		return nil, i.refused(err)
	}
	if d.Config != nil {
		i.Plain, i.Manifests = true, []Manifest{{Digest: digest}}
		return i, nil
	}
	for _, m := range d.Manifests {
		i.Manifests = append(i.Manifests, Manifest{Digest: m.Digest, Platform: m.Platform})
	}
	return i, nil
}

// Tags returns the tags of the repository of an image, in the registry's order; more reports that there are others.
func (r *Registry) Tags(ctx context.Context, name string) (all []string, more bool, err error) {
	at, err := r.locate(name)
	if err != nil {
		return nil, false, err
	}
	all, more, err = distribution.Open(at, distribution.Options{Credential: r.Credential, HTTP: r.HTTP}).Tags(ctx)
	return all, more, missing(at, err)
}

// MissingError is returned for an image, or a repository, that the registry does not have, or does not show without a login.
type MissingError struct {
	Reference distribution.Reference
	Err       error // of package distribution, whose remedy is for those who publish
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("read %s: the registry answered 404 Not Found: correct its name or tag, or log in (docker login) if it is private",
		e.Reference.Name())
}

func (e *MissingError) Unwrap() error { return e.Err }

// missing returns a MissingError if a registry does not have what was asked for, else err.
func missing(r distribution.Reference, err error) error {
	if distribution.NotFound(err) {
		return &MissingError{Reference: r, Err: err}
	}
	return err
}

// Layers reads the layers of a manifest by its place in Manifests.
func (i *Image) Layers(ctx context.Context, at int) (Layers, error) {
	content, _, err := i.repository.WithDigest(i.Manifests[at].Digest).ImageManifest(ctx)
	if distribution.NotFound(err) {
		return Layers{}, i.refused(fmt.Errorf("it lacks the manifest %.19s… of the index", i.Manifests[at].Digest))
	}
	if err != nil {
		return Layers{}, err
	}
	d, err := parse(content)
	if err == nil && d.Config == nil {
		err = errors.New("an index is in the index")
	}
	if err != nil {
		return Layers{}, i.refused(err)
	}
	l := Layers{config: distribution.Blob{Digest: d.Config.Digest, Size: d.Config.Size}}
	for _, layer := range d.Layers {
		l.All = append(l.All, distribution.Blob{Digest: layer.Digest, Size: layer.Size})
	}
	return l, nil
}

// Config reads the platform in the configuration of a manifest.
func (i *Image) Config(ctx context.Context, l Layers) (imagefit.Platform, error) {
	content, err := i.repository.ReadBlob(ctx, l.config, largestConfig)
	if err != nil {
		return imagefit.Platform{}, err
	}
	var p imagefit.Platform
	if err := json.Unmarshal(content, &p); err != nil {
		return p, i.refused(errors.New("its configuration is no JSON"))
	}
	if err := checkPlatform(&p); err != nil {
		return imagefit.Platform{}, i.refused(err)
	}
	return p, nil
}

func (i *Image) refused(err error) error {
	return fmt.Errorf("read the image %s: the registry sends no image: %w: check the name, or ask who runs the registry", i.repository.Reference().Name(), err)
}

// parse reads a manifest or an index, and checks everything that is used of it. Errors quote nothing of the text.
func parse(content []byte) (d document, err error) {
	if err := json.Unmarshal(content, &d); err != nil {
		return d, errors.New("its manifest is no JSON of a manifest")
	}
	switch {
	case d.SchemaVersion != 2:
		return d, errors.New("its manifest has another version than 2")
	case d.Config == nil && d.Manifests == nil:
		return d, errors.New("it has neither manifests nor a configuration")
	case d.Config != nil && d.Manifests != nil:
		return d, errors.New("its manifest is an index too, which containerd refuses")
	case len(d.Manifests) > mostManifests:
		return d, fmt.Errorf("its index has more than %d manifests", mostManifests)
	case len(d.Layers) > mostLayers:
		return d, fmt.Errorf("its manifest has more than %d layers", mostLayers)
	}
	all := append(d.Manifests[:len(d.Manifests):len(d.Manifests)], d.Layers...)
	if d.Config != nil {
		all = append(all, *d.Config)
	}
	for _, one := range all {
		if err := one.check(); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d descriptor) check() error {
	if !distribution.IsDigest(d.Digest) || d.Size < 0 || d.Size > largestLayer {
		return errors.New("its manifest names a part without a digest of SHA-256 or with an impossible size")
	}
	if d.Platform == nil {
		return nil
	}
	return checkPlatform(d.Platform)
}

// checkPlatform refuses texts that are longer than any real one.
func checkPlatform(p *imagefit.Platform) error {
	for _, text := range append([]string{p.OS, p.Architecture, p.Variant, p.OSVersion}, p.OSFeatures...) {
		if len(text) > longestText {
			return fmt.Errorf("a text of a platform has more than %d bytes", longestText)
		}
	}
	if len(p.OSFeatures) > longestText {
		return fmt.Errorf("a platform has more than %d features", longestText)
	}
	return nil
}
