package cni_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

// antreaSources are the manifests of build/yamls in the tag v2.7.0 of github.com/antrea-io/antrea, with their SHA-256.
func antreaSources() map[string]string {
	return map[string]string{
		"antrea.yml":                  "37a414ff6f43502296d9713a75f67ae7e3604bd667cd8449986541ed83a9fae0",
		"antrea-windows-with-ovs.yml": "8ec1c1e21672cc98486c5270ecfb96b719d8027acfd05838351a649e25cf6cd0",
	}
}

// antreaObjects returns the objects of a manifest.
func antreaObjects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content := unpacked(t, "antrea-v2.7.0-source-"+file)
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != antreaSources()[file] {
		t.Fatalf("%s has the hash %x", file, sum)
	}
	objects, err := cni.Parse(file, content)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func allOfAntrea(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return slices.Concat(antreaObjects(t, "antrea.yml"), antreaObjects(t, "antrea-windows-with-ovs.yml"))
}

// objectOf returns the object with the kind and the name of another one.
func objectOf(t *testing.T, all []*unstructured.Unstructured, like *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, o := range all {
		if cni.RefOf(o) == cni.RefOf(like) {
			return o
		}
	}
	t.Fatalf("Antrea publishes no %s", cni.RefOf(like))
	return nil
}

// changesOfAntrea are the settings in which swdt differs from Antrea's manifests, with the reason.
func changesOfAntrea() map[string]string {
	return map[string]string{
		"kubeAPIServerOverride": "without kube-proxy, the agent on Windows does not reach the Service of the API server",
	}
}

// Each object that swdt applies is the published one, field by field, but for swdt's label and the settings of
// changesOfAntrea. The text of the settings keeps all its comments.
func TestAntreaIsThePublishedOneWithTheSettingsOfWindows(t *testing.T) {
	all := allOfAntrea(t)
	linux := objectOf(t, all, cni.AntreaConfigObject())
	changed := 0
	for _, theirs := range all {
		ours := cni.Labelled(theirs.DeepCopy(), cni.Antrea)
		if err := cni.AntreaForWindows(wanted(t, cni.Antrea), ours, nil, linux); err != nil {
			t.Fatal(err)
		}
		before, after := fieldsOf("", theirs.Object), fieldsOf("", ours.Object)
		for path, value := range after {
			switch {
			case cmp.Equal(before[path], value):
			case path == "metadata.labels."+cni.Label && value == string(cni.Antrea):
			case path == "data.antrea-agent.conf" && cni.RefOf(ours) == cni.RefOf(cni.AntreaWindowsConfigObject()):
				changed++
				checkAntreaSettings(t, before[path].(string), value.(string))
			default:
				t.Errorf("%s: %s is %v, and %v as published", cni.RefOf(ours), path, value, before[path])
			}
		}
		for path := range before {
			if _, kept := after[path]; !kept {
				t.Errorf("%s: swdt leaves out %s", cni.RefOf(ours), path)
			}
		}
	}
	if changed != 1 {
		t.Errorf("swdt changes the settings of %d objects, want 1", changed)
	}
}

// checkAntreaSettings compares the settings of Windows with the published ones. Each that swdt sets must be one that the
// published text names, as a setting or in a comment, so that Antrea's agent knows it.
func checkAntreaSettings(t *testing.T, published, ours string) {
	t.Helper()
	var theirs, mine map[string]any
	for text, into := range map[string]*map[string]any{published: &theirs, ours: &mine} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	before, after := fieldsOf("", theirs), fieldsOf("", mine)
	for path, value := range after {
		if cmp.Equal(before[path], value) {
			continue
		}
		if _, known := changesOfAntrea()[path]; !known {
			t.Errorf("the setting %s is %v, and %v as published", path, value, before[path])
		}
		name := path[strings.LastIndex(path, ".")+1:]
		if !regexp.MustCompile(`(?m)^\s*#?\s*` + name + `:`).MatchString(published) {
			t.Errorf("Antrea's text has no setting %s", name)
		}
	}
	for path := range before {
		if _, kept := after[path]; !kept {
			t.Errorf("swdt leaves out the setting %s", path)
		}
	}
	for path := range changesOfAntrea() {
		if cmp.Equal(before[path], after[path]) {
			t.Errorf("swdt does not change %s", path)
		}
	}
	for line := range strings.Lines(published) {
		if comment := strings.TrimSpace(line); strings.HasPrefix(comment, "#") && !strings.Contains(ours, comment) {
			t.Errorf("the comment %q is lost", comment)
		}
	}
}

// The settings that swdt changes are found in the published text if a user has given them other values.
func TestEachSettingOfAntreaIsInThePublishedText(t *testing.T) {
	all := allOfAntrea(t)
	linux := objectOf(t, all, cni.AntreaConfigObject())
	conf, _, _ := unstructured.NestedString(linux.Object, "data", "antrea-agent.conf")
	other := linux.DeepCopy()
	text := conf + "\ntunnelType: vxlan\ntunnelPort: 4789\n"
	if err := unstructured.SetNestedField(other.Object, text, "data", "antrea-agent.conf"); err != nil {
		t.Fatal(err)
	}
	published := objectOf(t, all, cni.AntreaWindowsConfigObject())
	off := published.DeepCopy()
	windows, _, _ := unstructured.NestedString(off.Object, "data", "antrea-agent.conf")
	wrong := strings.NewReplacer("enable: true", "enable: false", "proxyAll: true", "proxyAll: false").Replace(windows)
	if wrong == windows {
		t.Fatal("the published text turns AntreaProxy on in another way")
	}
	if err := unstructured.SetNestedField(off.Object, wrong, "data", "antrea-agent.conf"); err != nil {
		t.Fatal(err)
	}
	if err := cni.AntreaForWindows(wanted(t, cni.Antrea), off, nil, other); err != nil {
		t.Fatal(err)
	}
	is, _, _ := unstructured.NestedString(off.Object, "data", "antrea-agent.conf")
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(is), &settings); err != nil {
		t.Fatal(err)
	}
	got := fieldsOf("", settings)
	for path, want := range map[string]string{"tunnelType": "vxlan", "tunnelPort": "4789", "antreaProxy.enable": "true",
		"antreaProxy.proxyAll": "true", "kubeAPIServerOverride": "kind-control-plane:6443"} {
		if fmt.Sprint(got[path]) != want {
			t.Errorf("%s is %v, want %s", path, got[path], want)
		}
		name := path[strings.LastIndex(path, ".")+1:]
		if !regexp.MustCompile(`(?m)^\s*#?\s*` + name + `:`).MatchString(windows) {
			t.Errorf("Antrea's text has no setting %s", name)
		}
	}
}

// The objects that swdt looks for by their names exist in the published manifests, and each manifest alone is accepted
// for its own part only.
func TestAntreaManifestsAreRecognized(t *testing.T) {
	linux, windows := antreaObjects(t, "antrea.yml"), antreaObjects(t, "antrea-windows-with-ovs.yml")
	if err := cni.CheckAntrea("both", slices.Concat(linux, windows), true, true); err != nil {
		t.Error(err)
	}
	if err := cni.CheckAntrea("antrea-windows-with-ovs.yml", windows, false, true); err != nil {
		t.Error(err)
	}
	if cni.CheckAntrea("antrea.yml", linux, true, true) == nil || cni.CheckAntrea("windows", windows, true, true) == nil {
		t.Error("one manifest alone is accepted for both parts")
	}
	for _, o := range []*unstructured.Unstructured{cni.AntreaWindowsConfigObject(), cni.AntreaWindowsObject()} {
		objectOf(t, windows, o)
	}
	objectOf(t, linux, cni.AntreaConfigObject())
	found := 0
	for _, o := range windows {
		if cni.OfAntreaWindows(o) {
			found++
		}
	}
	if found != len(windows) {
		t.Errorf("%d of %d objects of the manifest for Windows count as its own", found, len(windows))
	}
	names := map[string]bool{}
	for _, o := range linux {
		names[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = true
	}
	for _, name := range []string{"DaemonSet kube-system/antrea-agent", "Deployment kube-system/antrea-controller"} {
		if !names[name] {
			t.Errorf("Antrea publishes no %s, whose pods swdt waits for", name)
		}
	}
	for _, o := range linux {
		if cni.OfAntreaWindows(o) {
			t.Errorf("%s counts as one of Windows", cni.RefOf(o))
		}
	}
}
