package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/tools/release/checksum"
	"github.com/swdt-dev/swdt/tools/release/provenance"
)

const downloads = "https://github.com/swdt-dev/swdt/releases/download/v1.4.0/"

// testManifests compares the hash that each package manager would see with that of the archive. A manifest
// must name exactly the archives of its systems.
func testManifests(t *testing.T, dist string) {
	entries, err := checksum.Folder(dist)
	if err != nil {
		t.Fatal(err)
	}
	for name, manager := range map[string]struct {
		sources func(*testing.T, []byte) map[string]string
		systems []string
	}{
		"manifests/homebrew/swdt.rb":                    {homebrewSources, []string{"darwin", "linux"}},
		"manifests/scoop/swdt.json":                     {scoopSources, []string{"windows"}},
		"manifests/winget/swdt-dev.swdt.installer.yaml": {wingetSources, []string{"windows"}},
		"manifests/krew/swdt.yaml":                      {krewSources, []string{"darwin", "linux", "windows"}},
	} {
		want := map[string]string{}
		for _, system := range manager.systems {
			for _, entry := range entries {
				if strings.HasPrefix(entry.Name, "swdt_1.4.0_"+system+"_") {
					want[downloads+entry.Name] = entry.SHA256
				}
			}
		}
		if diff := cmp.Diff(want, manager.sources(t, read(t, dist, name))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, name := range []string{"swdt-dev.swdt.yaml", "swdt-dev.swdt.locale.en-US.yaml"} {
		var document struct {
			ID      string `yaml:"PackageIdentifier"`
			Version string `yaml:"PackageVersion"`
		}
		decodeYAML(t, read(t, dist, "manifests/winget/"+name), &document)
		if document.ID != "swdt-dev.swdt" || document.Version != "1.4.0" {
			t.Errorf("%s: got %+v", name, document)
		}
	}
}

func decodeYAML(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := yaml.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

var (
	rubyOpens  = regexp.MustCompile(`(?m)^\s*(class|def)\b|\bdo$`)
	rubyEnds   = regexp.MustCompile(`(?m)^\s*end$`)
	rubySource = regexp.MustCompile(`url "([^"]+)"\n\s*sha256 "([0-9a-f]{64})"`)
)

// homebrewSources reads the formula without Ruby: its blocks must at least be closed.
func homebrewSources(t *testing.T, text []byte) map[string]string {
	if opened, closed := len(rubyOpens.FindAll(text, -1)), len(rubyEnds.FindAll(text, -1)); opened != closed {
		t.Errorf("the formula opens %d blocks and closes %d:\n%s", opened, closed, text)
	}
	all := map[string]string{}
	for _, found := range rubySource.FindAllSubmatch(text, -1) {
		all[string(found[1])] = string(found[2])
	}
	return all
}

func scoopSources(t *testing.T, text []byte) map[string]string {
	var document struct {
		Version      string
		Architecture map[string]struct{ URL, Hash string }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	if document.Version != "1.4.0" {
		t.Errorf("got the version %q", document.Version)
	}
	all := map[string]string{}
	for source := range maps.Values(document.Architecture) {
		all[source.URL] = source.Hash
	}
	return all
}

func wingetSources(t *testing.T, text []byte) map[string]string {
	var document struct {
		Installers []struct {
			URL    string `yaml:"InstallerUrl"`
			SHA256 string `yaml:"InstallerSha256"`
		} `yaml:"Installers"`
	}
	decodeYAML(t, text, &document)
	all := map[string]string{}
	for _, source := range document.Installers {
		all[source.URL] = strings.ToLower(source.SHA256)
	}
	return all
}

func krewSources(t *testing.T, text []byte) map[string]string {
	var document struct {
		Spec struct {
			Platforms []struct {
				URI    string `yaml:"uri"`
				SHA256 string `yaml:"sha256"`
			} `yaml:"platforms"`
		} `yaml:"spec"`
	}
	decodeYAML(t, text, &document)
	all := map[string]string{}
	for _, source := range document.Spec.Platforms {
		all[source.URI] = source.SHA256
	}
	return all
}

// statement has the parts of the provenance that a verifier reads.
type statement struct {
	Subject []struct {
		Name   string
		Digest map[string]string
	}
	Predicate struct {
		BuildDefinition struct {
			ResolvedDependencies []struct {
				URI    string
				Digest map[string]string
			}
		}
	}
}

// testProvenance compares the subjects with all files that existed before the statement.
func testProvenance(t *testing.T, dist string) {
	const name = "swdt_1.4.0.intoto.json"
	var s statement
	if err := json.Unmarshal(read(t, dist, name), &s); err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, subject := range s.Subject {
		got[subject.Name] = subject.Digest["sha256"]
	}
	entries, err := checksum.Folder(dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name != name {
			want[entry.Name] = entry.SHA256
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	source := s.Predicate.BuildDefinition.ResolvedDependencies[0]
	if source.URI != "git+https://github.com/swdt-dev/swdt@"+commit || source.Digest["gitCommit"] != commit {
		t.Errorf("got the source %+v", source)
	}
}

func TestProvenanceOfChangedFilesNamesNoCommit(t *testing.T) {
	text, err := provenance.Build{Described: "v1.4.0-dirty", Commit: commit, Dirty: true, Go: "go1.26.0"}.Write()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), commit) {
		t.Errorf("the statement names a commit that was not the source:\n%s", text)
	}
}
