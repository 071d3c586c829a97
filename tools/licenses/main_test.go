package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/licenseclassifier/v2/assets"
)

func TestJudge(t *testing.T) {
	names, err := newClassifier()
	if err != nil {
		t.Fatal(err)
	}
	// The texts are those with which the classifier itself compares.
	licence := func(name, file string) []byte {
		content, err := assets.ReadLicenseFile("License/" + name + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	mit, gpl := licence("MIT", "pristine.txt"), licence("GPL-3.0", "license.txt")
	modules := []*module{
		{name: "example.org/good v1.0.0", texts: []*text{{path: "LICENSE", content: mit, license: true}}},
		{name: "example.org/strict v1.0.0", texts: []*text{{path: "COPYING", content: gpl, license: true}}},
		{name: "example.org/second v1.0.0", texts: []*text{
			{path: "LICENSE", content: mit, license: true}, {path: "parts/LICENSE", content: gpl, license: true},
		}},
		{name: "example.org/unknown v1.0.0", texts: []*text{{path: "LICENSE", content: []byte("Ask me."), license: true}}},
		{name: "example.org/none v1.0.0", texts: []*text{{path: "NOTICE", content: []byte("Made by us.")}}},
	}
	want := []string{
		"example.org/strict v1.0.0: COPYING has the licence GPL-3.0, which is not in the list of allowed ones",
		"example.org/second v1.0.0: parts/LICENSE has the licence GPL-3.0, which is not in the list of allowed ones",
		"example.org/unknown v1.0.0: LICENSE has no licence that is known",
		"example.org/none v1.0.0: it has no file with a licence",
	}
	if diff := cmp.Diff(want, judge(modules, names, allowed("# ours\n\nMIT\n"))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestTextsOf(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{
		"LICENSE", "NOTICE.txt", "license.go", "README.md", "linked/deep/LICENSE.MIT", "linked/COPYING", "other/LICENSE",
	} {
		write(t, filepath.Join(root, path), path)
	}
	m := &module{name: "example.org/m v1.0.0", root: root, folders: map[string]bool{filepath.Join(root, "linked", "deep"): true}}
	texts, err := textsOf(m)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, text := range texts {
		got[text.path] = text.license
	}
	want := map[string]bool{"LICENSE": true, "NOTICE.txt": false, "linked/deep/LICENSE.MIT": true, "linked/COPYING": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("texts, and which are licences (-want +got):\n%s", diff)
	}
}

func TestEqualTextsArePrintedOnce(t *testing.T) {
	license := func(content string) []*text {
		return []*text{{path: "LICENSE", content: []byte(content), license: true, names: []string{"MIT"}}}
	}
	modules := []*module{
		{name: "example.org/a v1.0.0", texts: license("Do as you like.\n")},
		{name: "example.org/b v1.0.0", texts: license("\nDo as you like.  \r\n\n")},
		{name: "example.org/c v1.0.0", texts: license("Do as I like.\n")},
	}
	rule, line := strings.Repeat("=", 80), strings.Repeat("-", 80)
	want := introduction + `example.org/a v1.0.0: MIT
example.org/b v1.0.0: MIT
example.org/c v1.0.0: MIT

` + rule + `
example.org/a v1.0.0: LICENSE
example.org/b v1.0.0: LICENSE
` + line + `

Do as you like.

` + rule + `
example.org/c v1.0.0: LICENSE
` + line + `

Do as I like.
`
	if diff := cmp.Diff(want, string(notices(modules))); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

func TestStaleNoticesAreFound(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := settle([]byte("new"), true); err != nil {
		t.Fatal(err)
	}
	if err := settle([]byte("new"), false); err != nil {
		t.Errorf("fresh notices: %v", err)
	}
	if err := settle([]byte("newer"), false); err == nil {
		t.Error("stale notices were accepted")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
