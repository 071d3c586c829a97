package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestNavigation(t *testing.T) {
	got := navigation("# Documentation\n\n## Guides: one task each\n\n| guide | you need it to |\n|---|---|\n" +
		"| [Push](guides/push.md) | push |\n\n## How it works\n\n| [Threats](security.md) | x |\n")
	want := []entry{
		{"swdt": "README.md"},
		{"Guides": []entry{{"All pages": "docs/README.md"}, {"Push": "docs/guides/push.md"}}},
		{"How it works": []entry{{"Threats": "docs/security.md"}}},
		{"Project": []entry{{"Contributing": "CONTRIBUTING.md"}, {"Security": "SECURITY.md"}, {"Changes": "CHANGELOG.md"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestStageTakesWhatPagesLinkTo stages the repository itself.
func TestStageTakesWhatPagesLinkTo(t *testing.T) {
	folder := t.TempDir()
	if err := stage("../..", folder); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"mkdocs.yml", "docs/README.md", "docs/THIRD_PARTY_NOTICES", "docs/docs/img/session.svg",
		"docs/docs/guides/push.md", "docs/assets/swdt.css"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckFindsDeadLinks(t *testing.T) {
	site := fstest.MapFS{}
	for name, text := range map[string]string{
		"index.html": `<a href="a/#here">1</a> <a href="a/">2</a> <a href="/a/">3</a> <a href=".">4</a> <img src="a/x.svg">
			<a href="https://example.org/gone">5</a> <a href="mailto:a@example.org">6</a> <p id="top"><a href="#top">7</a>`,
		"a/index.html": `<h1 id="here">a</h1> <a href="..">up</a> <a href="../b/">1</a> <a href="#there">2</a>
			<a href="../#bottom">3</a> <img src="y.svg">`,
		"a/x.svg": `<svg/>`,
	} {
		site[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got, err := check(site)
	want := []string{
		"a/index.html: #there: leads to no element",
		"a/index.html: ../#bottom: leads to no element",
		"a/index.html: ../b/: leads to no file",
		"a/index.html: y.svg: leads to no file",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
