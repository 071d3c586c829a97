package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sourceOf returns a source with these files, as in the modules' zips.
func sourceOf(t *testing.T, files map[string]string) *source {
	t.Helper()
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for name, text := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	s := &source{files: map[string]*zip.File{}, hashes: map[string]string{}}
	for _, f := range reader.File {
		s.files[f.Name] = f
	}
	return s
}

// The forms of gates in Kubernetes' sources: a constant of the package or of another, states by version, and states
// without a version.
func TestGates(t *testing.T) {
	s := sourceOf(t, map[string]string{
		"k8s.io/kubernetes/pkg/features/kube_features.go": `package features
const Steam featuregate.Feature = "SteamEngine"
var all = map[featuregate.Feature]featuregate.VersionedSpecs{
	Steam: {
		{Version: version.MustParse("1.20"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.34"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
	},
	genericfeatures.Water: {{Version: version.MustParse("1.35"), Default: true, PreRelease: featuregate.Beta}},
}
var defaultKubernetesFeatureGateDependencies = map[featuregate.Feature][]featuregate.Feature{
	Steam: {genericfeatures.Water}, genericfeatures.Water: {},
}`,
		"k8s.io/apiserver/pkg/features/kube_features.go": `package features
const Water featuregate.Feature = "Water"`,
		"k8s.io/client-go/features/known_features.go": `package features
var defaultKubernetesFeatureGates = map[Feature]FeatureSpec{Coal: {Default: false, PreRelease: Alpha}}`,
	})
	for minor, want := range map[int]map[string]string{
		33: {"SteamEngine": "alpha off", "Coal": "alpha off"},
		35: {"SteamEngine": "ga on locked", "Water": "beta on", "Coal": "alpha off"},
	} {
		found, err := gates(s, minor)
		got := map[string]string{}
		for name, g := range found {
			got[name] = g.String()
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("1.%d: %v -want +got:\n%s", minor, err, diff)
		}
	}
	needs, err := dependencies(s)
	if diff := cmp.Diff(map[string][]string{"SteamEngine": {"Water"}}, needs); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

func TestFlagsOfOneFunction(t *testing.T) {
	s := sourceOf(t, map[string]string{
		"k8s.io/kubernetes/cmd/kubelet/app/options/options.go": `package options
const named = "by-constant"
func AddKubeletConfigFlags(fs *pflag.FlagSet) { fs.StringVar(&a, "in-a-file", "", "") }
func (f *F) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&a, named, true, "")
	fs.VarP(v, "long", "l", "")
	fs.StringVar(&a, "old", "", "")
	fs.MarkDeprecated("old", "")
	other.StringVar(&a, "none", "", "")
}`,
		"k8s.io/kubernetes/cmd/kubelet/app/options/options_linux.go": `package options
func linux(fs *pflag.FlagSet) { fs.StringVar(&a, "linux", "", "") }`,
	})
	got, err := flags(s, "kubelet")
	if err == nil || !strings.Contains(err.Error(), "7 flags") || got != nil {
		t.Errorf("so few flags must be an error: %v, %v", got, err)
	}
}

func TestTable(t *testing.T) {
	h := history{}
	h.add(33, map[string]string{"stays": "known", "changes": "known", "goes": "known"})
	h.add(34, map[string]string{"stays": "known", "changes": "deprecated", "comes": "known"})
	h.add(35, map[string]string{"stays": "known", "changes": "deprecated", "comes": "known"})
	var b bytes.Buffer
	h.write(&b)
	var got map[string][]string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"stays": {"33 known"}, "changes": {"33 known", "34 deprecated"},
		"goes": {"33 known", "34 gone"}, "comes": {"34 known"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFirstDifference(t *testing.T) {
	if got := firstDifference([]byte("a\nb\n"), []byte("a\nc\n")); got != `line 2, "b"` {
		t.Error(got)
	}
}
