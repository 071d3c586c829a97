package speclist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/readiness"
)

func TestAListIsReadAsItWasWritten(t *testing.T) {
	list := List{Version: "v1.36.3", Specs: []readiness.Spec{
		{Name: "[sig-a] a: b", Labels: []string{"sig-a", "Feature:X"}}, {Name: "b"}}}
	path := filepath.Join(t.TempDir(), "list"+Extension)
	for _, wantChanged := range []bool{true, false} {
		changed, err := list.WriteFile(path)
		if err != nil || changed != wantChanged {
			t.Fatalf("changed %t, error %v", changed, err)
		}
	}
	got, err := ReadFile(path)
	if diff := cmp.Diff(list, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	for _, spec := range []readiness.Spec{{Name: "a\tb"}, {Name: "a\nb"}, {Name: "a", Labels: []string{"x,y"}}} {
		if _, err := (List{Specs: []readiness.Spec{spec}}).Text(); err == nil {
			t.Errorf("%+v was written", spec)
		}
	}
}

func TestABrokenListIsRefused(t *testing.T) {
	for _, text := range []string{"", "a list\n", "specs of e2e.test v1\nname without labels\n", "specs of e2e.test v1\n\tx\n"} {
		if list, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, list)
		}
	}
	path := filepath.Join(t.TempDir(), "list"+Extension)
	if err := os.WriteFile(path, []byte("no zstd"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
}

func TestReportIsComparedWithTheNames(t *testing.T) {
	const text = `[{"SpecReports":[
{"LeafNodeType":"SynchronizedBeforeSuite"},
{"ContainerHierarchyTexts":["[sig-a] A","","when b"],"ContainerHierarchyLabels":[["sig-a"],["Slow"]],"LeafNodeType":"It",
"LeafNodeText":"c: d","LeafNodeLabels":["Slow","Serial"]}]}]`
	all, err := specs([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []readiness.Spec{{Name: "[sig-a] A when b c: d", Labels: []string{"sig-a", "Slow", "Serial"}}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	list := List{Version: "v1", Specs: all}
	if err := list.compare([]byte("These specs:\n    a/b.go:12: [sig-a] A when b c: d\n\n")); err != nil {
		t.Error(err)
	}
	if list.compare([]byte("    a/b.go:12: [sig-a] A when b c: e\n")) == nil {
		t.Error("another name was accepted")
	}
}
