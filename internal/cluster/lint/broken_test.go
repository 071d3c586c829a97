package lint_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// A document that is no YAML is an error of its own, so that CI fails, and the rest of its file is read. A template is
// only named, and so is JSON that is no manifest, such as a configuration file with comments.
func TestABrokenDocumentIsAnError(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: Pod\n"
	for name, test := range map[string]struct {
		file, text, want string
		unread           int
	}{
		"a manifest":               {"a.yaml", manifest + "spec: [\n", "file-yaml:1", 0},
		"another document":         {"a.yaml", manifest + "spec: [\n---\n" + lint.Manifest("hostPID: true"), "file-yaml:1 sec-linux-field:10", 0},
		"a template elsewhere":     {"a.yaml", manifest + "spec: {{ .Spec }}}\n", "", 1},
		"JSON":                     {"a.json", "{\n// a comment\n\"apiVersion\": \"v1\"}", "file-yaml:1", 0},
		"JSON that is no manifest": {"tsconfig.json", "{\n// a comment\n\"a\": 1}", "", 1},
	} {
		var r lint.Reader
		r.File(test.file, []byte(test.text))
		report := r.Check(lint.Options{})
		var got []string
		for _, f := range report.Findings {
			if f.Severity == finding.Error {
				got = append(got, fmt.Sprintf("%s:%d", f.Rule, f.Line))
			}
		}
		if strings.Join(got, " ") != test.want || len(report.Unread) != test.unread {
			t.Errorf("%s: %q and %+v, want %q", name, got, report.Unread, test.want)
		}
	}
}

// A file that is broken fails its test of JUnit, and one that was not read is skipped.
func TestUnreadFilesDoNotPass(t *testing.T) {
	var r lint.Reader
	err := r.Folder(fstest.MapFS{
		"broken.yaml":      {Data: []byte("a: [")},
		"templates/a.yaml": {Data: []byte("kind: {{ .Values.kind }}\n")},
		"good.yaml":        {Data: []byte(lint.Manifest("hostPID: true"))},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Check(lint.Options{}).Write(&out, lint.JUnit); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`tests="3" failures="2" skipped="1"`, `type="file-yaml" message="the document is not YAML: `,
		`<skipped message="not read: is a template: render it first, with helm template">`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

// kubectl takes the last value of a key that is there twice (sigs.k8s.io/yaml v1.6.0, YAMLToJSON), and so does lint.
func TestDuplicateKeysAreReported(t *testing.T) {
	for spec, want := range map[string]string{
		"hostPID: false\nhostPID: true":                            "file-duplicate-key:7 sec-linux-field:7",
		"hostPID: true\nhostPID: false":                            "file-duplicate-key:7",
		"volumes: [{name: v, emptyDir: {}, name: w}]":              "file-duplicate-key:6",
		"volumes: [&v {name: v, emptyDir: {}}, {<<: *v, name: w}]": "",
	} {
		report := checked(t, lint.Manifest(spec))
		var got []string
		for _, f := range report.Findings {
			if f.Severity != finding.Info {
				got = append(got, fmt.Sprintf("%s:%d", f.Rule, f.Line))
			}
		}
		if !equalSets(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", spec, got, want)
		}
	}
}

func equalSets(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
