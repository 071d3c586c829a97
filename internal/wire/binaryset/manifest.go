package binaryset

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// The types that mark an artifact and its layers.
const (
	ArtifactType = "application/vnd.swdt.binaries.v1"
	BinaryType   = "application/vnd.swdt.binary.v1+zstd"
	PatchType    = "application/vnd.swdt.patch.v1"
	emptyType    = "application/vnd.oci.empty.v1+json"
)

// EmptyConfig is the content of the config that the manifest of an artifact must name.
const EmptyConfig = "{}"

// The annotations of layers.
const (
	titleKey       = "org.opencontainers.image.title"
	versionKey     = "org.opencontainers.image.version"
	componentKey   = "dev.swdt.component"
	destinationKey = "dev.swdt.destination"
	sha256Key      = "dev.swdt.binary.sha256"
	sizeKey        = "dev.swdt.binary.size"
	baseKey        = "dev.swdt.patch.base.sha256"
)

// manifest is an OCI image manifest with the fields that a set needs.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	ArtifactType  string       `json:"artifactType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Manifest returns the manifest of the set: each binary, followed by its patches. It has no date,
// so that the same set always has the same digest.
func (s Set) Manifest() ([]byte, error) {
	if problem := s.check(); problem != "" {
		return nil, fmt.Errorf("make the manifest of a set of binaries: %s", problem)
	}
	m := manifest{SchemaVersion: 2, MediaType: distribution.ManifestType, ArtifactType: ArtifactType,
		Config: descriptor{MediaType: emptyType, Digest: distribution.DigestOf([]byte(EmptyConfig)),
			Size: int64(len(EmptyConfig))}}
	for _, b := range s.Binaries {
		m.Layers = append(m.Layers, b.layer())
		for _, p := range b.Patches {
			m.Layers = append(m.Layers, b.patchLayer(p))
		}
	}
	return json.Marshal(m)
}

func (b Binary) layer() descriptor {
	annotations := map[string]string{titleKey: b.Title, componentKey: b.Component, sha256Key: b.SHA256,
		sizeKey: strconv.FormatInt(b.Size, 10)}
	if b.Version != "" {
		annotations[versionKey] = b.Version
	}
	if b.Destination != "" {
		annotations[destinationKey] = b.Destination
	}
	return descriptor{BinaryType, b.Layer.Digest, b.Layer.Size, annotations}
}

func (b Binary) patchLayer(p Patch) descriptor {
	return descriptor{PatchType, p.Layer.Digest, p.Layer.Size, map[string]string{
		titleKey: fmt.Sprintf("%.200s.from-%.12s.patch", b.Title, p.Base), componentKey: b.Component, baseKey: p.Base}}
}

// Parse returns the set of a manifest. It ignores layers of types that it does not know. The error
// is a *ManifestError.
func Parse(content []byte) (Set, error) {
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return Set{}, &ManifestError{What: "it is not JSON of a manifest"}
	}
	if m.MediaType == distribution.IndexType {
		return Set{}, &ManifestError{What: "it is an index of several artifacts"}
	}
	if m.MediaType != distribution.ManifestType || m.ArtifactType != ArtifactType {
		return Set{}, &ManifestError{What: "it is an artifact or image of another type"}
	}
	var s Set
	patches := map[string][]Patch{}
	for _, l := range m.Layers {
		component := l.Annotations[componentKey]
		blob := distribution.Blob{Digest: l.Digest, Size: l.Size}
		switch l.MediaType {
		case BinaryType:
			s.Binaries = append(s.Binaries, parseBinary(l, blob))
		case PatchType:
			patches[component] = append(patches[component], Patch{l.Annotations[baseKey], blob})
		}
	}
	for i := range s.Binaries {
		s.Binaries[i].Patches = patches[s.Binaries[i].Component]
	}
	if problem := s.check(); problem != "" {
		return Set{}, &ManifestError{What: problem}
	}
	return s, nil
}

func parseBinary(l descriptor, blob distribution.Blob) Binary {
	size, err := strconv.ParseInt(l.Annotations[sizeKey], 10, 64)
	if err != nil {
		size = 0 // not valid
	}
	return Binary{
		Component: l.Annotations[componentKey], Title: l.Annotations[titleKey], Version: l.Annotations[versionKey],
		Destination: l.Annotations[destinationKey], SHA256: l.Annotations[sha256Key], Size: size, Layer: blob,
	}
}
