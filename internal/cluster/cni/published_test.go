package cni_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

// published returns a file that Calico publishes for a version, as testdata/published has it.
func published(t *testing.T, version, file string) []byte {
	t.Helper()
	return unpacked(t, "calico-"+version+"-"+file)
}

// unpacked returns a file of testdata/published.
func unpacked(t *testing.T, file string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path.Join("testdata", "published", file+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// The hashes that swdt knows are those of the published files, and both manifests together are those of Calico's
// operator. A manifest without the other one is refused.
func TestKnownHashesAreThoseOfThePublishedFiles(t *testing.T) {
	for _, name := range []string{"v3.31.7", "v3.32.1"} {
		release := cni.ReleaseOf(cni.Calico, name, "")
		var all []*unstructured.Unstructured
		for url, want := range map[string]string{release.URL: release.SHA256, release.CRDsURL: release.CRDsSHA256} {
			content := published(t, name, path.Base(url))
			sum := sha256.Sum256(content)
			if got := hex.EncodeToString(sum[:]); got != want {
				t.Errorf("%s %s has sha256 %s, and swdt knows %s", name, path.Base(url), got, want)
			}
			objects, err := cni.Parse(url, content)
			if err != nil {
				t.Fatal(err)
			}
			if err := cni.CheckCalico(url, objects); err == nil {
				t.Errorf("%s %s alone is accepted", name, path.Base(url))
			}
			all = append(all, objects...)
		}
		if err := cni.CheckCalico(name, all); err != nil {
			t.Error(err)
		}
	}
}

// The default is the newest version whose hash swdt knows and that is tested with the cluster's Kubernetes.
func TestDefaultReleaseSupportsTheClustersKubernetes(t *testing.T) {
	for kubernetes, want := range map[string]string{
		"":                    "v3.32.1",
		"v1.38.0-beta.0":      "v3.32.1", // no known version is tested with it
		"v1.37.2":             "v3.32.1",
		"v1.36.3":             "v3.32.1",
		"v1.34.9-gke.1389000": "v3.32.1",
		"v1.33.13":            "v3.31.7",
		"v1.32.4+k3s1":        "v3.31.7",
		"v1.31.0":             "v3.29.7",
		"v1.29.1":             "v3.29.7",
		"v1.28.9":             "v3.28.5",
	} {
		if got := cni.DefaultRelease(cni.Calico, kubernetes); got.Version != want || got.SHA256 == "" {
			t.Errorf("Kubernetes %q: Calico %s, want %s", kubernetes, got.Version, want)
		}
	}
}

// Calico has its CustomResourceDefinitions in a manifest of their own since v3.30.
func TestSecondManifestOfCalico(t *testing.T) {
	for name, want := range map[string]bool{"3.27.0": false, "v3.29.7": false, "v3.30.0": true, "3.32.1": true, "v4.0.0": true} {
		if got := cni.ReleaseOf(cni.Calico, name, "").CRDsURL != ""; got != want {
			t.Errorf("%s has a second manifest: %t", name, got)
		}
	}
}

// settingsOfWindows are the fields of the Installation in which swdt differs from the one that Calico publishes, with
// the reason.
func settingsOfWindows() map[string]string {
	return map[string]string{
		"calicoNetwork.bgp":                      "pods on Windows are not reached with BGP",
		"calicoNetwork.windowsDataplane":         "the operator runs Calico on Windows nodes only with it",
		"calicoNetwork.ipPools[0].cidr":          "the addresses are those of the cluster",
		"calicoNetwork.ipPools[0].encapsulation": "the operator refuses VXLANCrossSubnet for Windows",
		"serviceCIDRs[0]":                        "the operator demands them for Windows",
	}
}

// swdt's Installation is the published one, but for the fields of settingsOfWindows.
func TestInstallationIsThePublishedOneWithTheSettingsOfWindows(t *testing.T) {
	for _, name := range []string{"v3.31.7", "v3.32.1"} {
		objects, err := cni.Parse(name, published(t, name, "custom-resources.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			ours := cni.CalicoAPIServer()
			if o.GetKind() == "Installation" {
				ours = cni.Installation(wanted(t, cni.Calico), nil)
			}
			if o.GetKind() != ours.GetKind() {
				continue // Goldmane and Whisker, which no Windows node needs
			}
			if o.GetAPIVersion() != ours.GetAPIVersion() || o.GetName() != ours.GetName() {
				t.Errorf("%s: %s %s is %s %s in swdt", name, o.GetAPIVersion(), o.GetName(), ours.GetAPIVersion(), ours.GetName())
			}
			theirs, mine := fieldsOf("", o.Object["spec"]), fieldsOf("", ours.Object["spec"])
			for path, value := range theirs {
				if _, differs := settingsOfWindows()[path]; !differs && !cmp.Equal(mine[path], value) {
					t.Errorf("%s: %s is %v, and %v as published", name, path, mine[path], value)
				}
			}
			for path := range mine {
				_, known := theirs[path]
				if _, differs := settingsOfWindows()[path]; !known && !differs {
					t.Errorf("%s: swdt sets %s, which the published one has not", name, path)
				}
			}
		}
	}
}

// fieldsOf returns the values of an object by their paths.
func fieldsOf(at string, value any) map[string]any {
	all := map[string]any{}
	add := func(path string, part any) {
		for p, v := range fieldsOf(path, part) {
			all[p] = v
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for key, part := range value {
			path := key
			if at != "" {
				path = at + "." + key
			}
			add(path, part)
		}
	case []any:
		for i, part := range value {
			add(at+"["+string(rune('0'+i))+"]", part)
		}
	default:
		all[at] = value
	}
	return all
}

// Each field that swdt applies exists in the published CustomResourceDefinition, with the value among its enumeration:
// the API server refuses others.
func TestInstallationFitsThePublishedSchemas(t *testing.T) {
	for _, name := range []string{"v3.31.7", "v3.32.1"} {
		objects, err := cni.Parse(name, published(t, name, "operator-crds.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for kind, ours := range map[string]*unstructured.Unstructured{
			"installations.operator.tigera.io": cni.Installation(wanted(t, cni.Calico), nil),
			"apiservers.operator.tigera.io":    cni.CalicoAPIServer(),
		} {
			schema := schemaOf(t, objects, kind)
			spec, _, _ := unstructured.NestedMap(schema, "properties", "spec")
			checkSchema(t, name+" "+kind+" spec", spec, ours.Object["spec"])
		}
	}
}

func schemaOf(t *testing.T, objects []*unstructured.Unstructured, kind string) map[string]any {
	t.Helper()
	for _, o := range objects {
		if o.GetName() != kind {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		schema, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
		if err != nil || schema == nil {
			t.Fatalf("%s has no schema: %v", kind, err)
		}
		return schema
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

func checkSchema(t *testing.T, at string, schema map[string]any, value any) {
	t.Helper()
	if allowed, ok := schema["enum"].([]any); ok && !contains(allowed, value) {
		t.Errorf("%s is %v, which is none of %v", at, value, allowed)
	}
	switch value := value.(type) {
	case map[string]any:
		fields, _ := schema["properties"].(map[string]any)
		for key, part := range value {
			field, ok := fields[key].(map[string]any)
			if !ok {
				t.Errorf("%s has no field %s", at, key)
				continue
			}
			checkSchema(t, at+"."+key, field, part)
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, part := range value {
			checkSchema(t, at+"[]", items, part)
		}
	}
}

func contains(all []any, value any) bool {
	for _, one := range all {
		if cmp.Equal(one, value) {
			return true
		}
	}
	return false
}

// The image of the operator says which Calico it is.
func TestCalicoOfOperator(t *testing.T) {
	for _, name := range []string{"v3.31.7", "v3.32.1"} {
		objects, err := cni.Parse(name, published(t, name, "tigera-operator.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetKind() != "Deployment" {
				continue
			}
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			image, _ := containers[0].(map[string]any)["image"].(string)
			v := version.MustParseGeneric(name)
			if got := (cni.Programs{Exists: true, Image: image}).CalicoMinor(); got != int(v.Minor()) {
				t.Errorf("%s is Calico 3.%d, want %s", image, got, name)
			}
		}
	}
}
