package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/tools/release/checksum"
)

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

// TestProvenanceKnowsOfChangedFiles makes releases whose version is a tag, as in CI, and one that `git describe` marks.
func TestProvenanceKnowsOfChangedFiles(t *testing.T) {
	folder := checkout(t)
	for _, test := range []struct {
		args []string
		want bool
	}{
		{nil, false}, {[]string{"-changed"}, true}, {[]string{"-version", "v1.4.0-dirty"}, true},
	} {
		dist, _ := released(t, folder, test.args...)
		all, err := filepath.Glob(filepath.Join(dist, "*.intoto.json"))
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, statements: %v", err, all)
		}
		text := string(read(t, dist, filepath.Base(all[0])))
		if strings.Contains(text, `"changedSinceCommit": true`) != test.want || strings.Contains(text, commit) == test.want {
			t.Errorf("%v: the statement is\n%s", test.args, text)
		}
	}
}
