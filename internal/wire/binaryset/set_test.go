package binaryset_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

func sample() binaryset.Set {
	hash := func(digit string) string { return strings.Repeat(digit, 64) }
	blob := func(digit string, size int64) distribution.Blob {
		return distribution.Blob{Digest: "sha256:" + hash(digit), Size: size}
	}
	return binaryset.Set{Binaries: []binaryset.Binary{
		{Component: "containerd", Title: "containerd.exe", SHA256: hash("1"), Size: 55, Layer: blob("2", 20)},
		{Component: "kubelet", Title: "kubelet.exe", Version: "v1.36.3", Destination: `C:\k\kubelet.exe`,
			SHA256: hash("3"), Size: 84, Layer: blob("4", 30),
			Patches: []binaryset.Patch{{Base: hash("5"), Layer: blob("6", 7)}, {Base: hash("7"), Layer: blob("8", 9)}}},
	}}
}

func TestManifestHoldsTheSet(t *testing.T) {
	manifest, err := sample().Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got, err := binaryset.Parse(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Error(diff)
	}
	again, err := sample().Manifest()
	if err != nil || string(again) != string(manifest) {
		t.Errorf("the same set has two manifests, %v", err)
	}
	for _, part := range []string{`"artifactType":"application/vnd.swdt.binaries.v1"`,
		`"config":{"mediaType":"application/vnd.oci.empty.v1+json",` +
			`"digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2}`} {
		if !strings.Contains(string(manifest), part) {
			t.Errorf("the manifest lacks %s: %s", part, manifest)
		}
	}
}

func TestInvalidSetsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*binaryset.Set){
		"empty":             func(s *binaryset.Set) { s.Binaries = nil },
		"two of a name":     func(s *binaryset.Set) { s.Binaries[0].Component = "kubelet" },
		"a path":            func(s *binaryset.Set) { s.Binaries[0].Title = "../../kubelet.exe" },
		"a Windows path":    func(s *binaryset.Set) { s.Binaries[0].Title = `..\kubelet.exe` },
		"a stream":          func(s *binaryset.Set) { s.Binaries[0].Title = "kubelet.exe:hidden" },
		"dots":              func(s *binaryset.Set) { s.Binaries[0].Title = ".." },
		"no title":          func(s *binaryset.Set) { s.Binaries[0].Title = "" },
		"control":           func(s *binaryset.Set) { s.Binaries[0].Version = "1\x1b[2J" },
		"a long name":       func(s *binaryset.Set) { s.Binaries[0].Component = strings.Repeat("x", 256) },
		"a hash as path":    func(s *binaryset.Set) { s.Binaries[0].SHA256 = "../" + strings.Repeat("1", 61) },
		"a large hash":      func(s *binaryset.Set) { s.Binaries[0].SHA256 = strings.Repeat("A", 64) },
		"no size":           func(s *binaryset.Set) { s.Binaries[0].Size = 0 },
		"a negative size":   func(s *binaryset.Set) { s.Binaries[0].Size = -1 },
		"a digest as path":  func(s *binaryset.Set) { s.Binaries[0].Layer.Digest = "sha256:../x" },
		"an empty layer":    func(s *binaryset.Set) { s.Binaries[0].Layer.Size = 0 },
		"a base as path":    func(s *binaryset.Set) { s.Binaries[1].Patches[0].Base = "../x" },
		"one base twice":    func(s *binaryset.Set) { s.Binaries[1].Patches[1].Base = s.Binaries[1].Patches[0].Base },
		"a patch to itself": func(s *binaryset.Set) { s.Binaries[1].Patches[0].Base = s.Binaries[1].SHA256 },
	} {
		t.Run(name, func(t *testing.T) {
			s := sample()
			change(&s)
			if _, err := s.Manifest(); err == nil {
				t.Error("Manifest made it")
			}
			_, err := binaryset.Parse(written(t, s))
			var wrong *binaryset.ManifestError
			if !errors.As(err, &wrong) {
				t.Errorf("Parse: the error is %v, want a %T", err, wrong)
			}
		})
	}
}

// written returns the manifest of a set without the checks of Manifest.
func written(t *testing.T, s binaryset.Set) []byte {
	t.Helper()
	type layer = map[string]any
	layers := []layer{}
	for _, b := range s.Binaries {
		layers = append(layers, layer{"mediaType": binaryset.BinaryType, "digest": b.Layer.Digest, "size": b.Layer.Size,
			"annotations": layer{"dev.swdt.component": b.Component, "org.opencontainers.image.title": b.Title,
				"org.opencontainers.image.version": b.Version, "dev.swdt.destination": b.Destination,
				"dev.swdt.binary.sha256": b.SHA256, "dev.swdt.binary.size": json.Number(jsonOf(t, b.Size)).String()}})
		for _, p := range b.Patches {
			layers = append(layers, layer{"mediaType": binaryset.PatchType, "digest": p.Layer.Digest, "size": p.Layer.Size,
				"annotations": layer{"dev.swdt.component": b.Component, "dev.swdt.patch.base.sha256": p.Base}})
		}
	}
	return []byte(jsonOf(t, layer{"schemaVersion": 2, "mediaType": distribution.ManifestType,
		"artifactType": binaryset.ArtifactType, "layers": layers}))
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func FuzzParse(f *testing.F) {
	manifest, err := sample().Manifest()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(manifest)
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := binaryset.Parse(content)
		if err != nil {
			return
		}
		if _, err := s.Manifest(); err != nil { // what is accepted is valid
			t.Error(err)
		}
	})
}
