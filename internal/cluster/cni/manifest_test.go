package cni_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ns}\n"

func TestParse(t *testing.T) {
	other := strings.Replace(object, "name: a", "name: b", 1)
	all, err := cni.Parse("m.yaml", []byte("# a comment\n---\n"+object+"---\n---\n"+other))
	if err != nil || len(all) != 2 || cni.RefOf(all[1]).String() != "ConfigMap ns/b" {
		t.Errorf("%v, %v", all, err)
	}
}

// Nothing that a hostile or broken manifest has makes swdt apply an object that is not in it.
func TestParseRefuses(t *testing.T) {
	for name, content := range map[string]string{
		"nothing":         "",
		"a page":          "<!DOCTYPE html><html>404</html>",
		"an object twice": object + "---\n" + object,
		"a list":          "apiVersion: v1\nkind: List\nitems: []\n",
		"no kind":         "apiVersion: v1\nmetadata: {name: a}\n",
		"no name":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a}\n",
		"a version":       "apiVersion: a/b/c\nkind: ConfigMap\nmetadata: {name: a}\n",
		"many documents":  strings.Repeat("a: 1\n---\n", 1100),
		"too large":       "# " + strings.Repeat("x", cni.MaxManifest),
		"aliases": "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" +
			"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
	} {
		all, err := cni.Parse("m.yaml", []byte(content))
		var wrong *cni.ManifestError
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), "m.yaml") {
			t.Errorf("%s: %d objects, %v", name, len(all), err)
		}
	}
}

func TestManifestsOfOtherProgramsAreRefused(t *testing.T) {
	all, err := cni.Parse("m.yaml", []byte(object))
	if err != nil {
		t.Fatal(err)
	}
	var wrong *cni.ManifestError
	if err := cni.CheckCalico("m.yaml", all); !errors.As(err, &wrong) {
		t.Errorf("CheckCalico = %v", err)
	}
	if err := cni.CheckFlannel("m.yaml", all); !errors.As(err, &wrong) {
		t.Errorf("CheckFlannel = %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(object))
	f.Add([]byte("---\n" + object + "---\nkind: x\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		all, err := cni.Parse("m.yaml", content)
		if (err == nil) != (len(all) > 0) {
			t.Fatalf("%d objects, %v", len(all), err)
		}
		for _, o := range all {
			if ref := cni.RefOf(o); ref.Kind == "" || ref.Name == "" {
				t.Errorf("an object without kind or name: %+v", ref)
			}
		}
	})
}
