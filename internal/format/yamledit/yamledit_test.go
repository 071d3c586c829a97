package yamledit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/format/yamledit"
)

// byHand is a configuration in a form that no encoder writes: comments, two indents, blank lines, quotes.
const byHand = `# of the team; ask before changes
apiVersion: kubelet.config.k8s.io/v1beta1
kind:   KubeletConfiguration   # kubelet's

maxPods: 40  # small machines
"clusterDomain": 'cluster.local'
featureGates:
    Second: true

    # needed for the storage
    First: false
evictionHard: {memory.available: 500Mi, "nodefs.available": "10%"}
clusterDNS:
- 10.96.0.10
- 10.96.0.11
staticPodPath:
tlsCipherSuites: [A,
  B]
`

func TestSet(t *testing.T) {
	for name, test := range map[string]struct {
		path     string
		value    any
		old, new string // a part of byHand and what it becomes
	}{
		"a number":          {"maxPods", 50, "maxPods: 40  # small", "maxPods: 50  # small"},
		"a quoted text":     {"clusterDomain", "example.com", `'cluster.local'`, "example.com"},
		"a gate":            {"featureGates/First", true, "First: false", "First: true"},
		"a new gate":        {"featureGates/Third", true, "    First: false\n", "    First: false\n    Third: true\n"},
		"in brackets":       {"evictionHard/memory.available", "1Gi", "500Mi", `"1Gi"`},
		"new in brackets":   {"evictionHard/imagefs.available", "5%", "{memory", `{imagefs.available: "5%", memory`},
		"a list":            {"clusterDNS", []any{"10.96.0.53"}, "\n- 10.96.0.10\n- 10.96.0.11", ` ["10.96.0.53"]`},
		"no value yet":      {"staticPodPath", `C:\k\manifests`, "staticPodPath:", `staticPodPath: C:\k\manifests`},
		"a list of 2 lines": {"tlsCipherSuites", []any{"C"}, "[A,\n  B]", "[C]"},
		"a new field":       {"readOnlyPort", 0, "  B]\n", "  B]\nreadOnlyPort: 0\n"},
		"a new mapping":     {"logging/verbosity", 4, "  B]\n", "  B]\nlogging:\n  verbosity: 4\n"},
		"a word of YAML":    {"clusterDomain", "no", `'cluster.local'`, `"no"`},
		"two lines of text": {"clusterDomain", "a\nb", `'cluster.local'`, `"a\nb"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lineEnd := range []string{"\n", "\r\n"} {
				ends := func(text string) string { return strings.ReplaceAll(text, "\n", lineEnd) }
				got, err := yamledit.Set(ends(byHand), strings.Split(test.path, "/"), test.value)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(strings.Replace(ends(byHand), ends(test.old), ends(test.new), 1), got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestUnset(t *testing.T) {
	for name, test := range map[string]struct{ path, old, new string }{
		"a number":                    {"maxPods", "maxPods: 40  # small machines\n", ""},
		"a gate":                      {"featureGates/Second", "    Second: true\n", ""},
		"the first in brackets":       {"evictionHard/memory.available", `memory.available: 500Mi, `, ""},
		"the last in brackets":        {"evictionHard/nodefs.available", `, "nodefs.available": "10%"`, ""},
		"a list":                      {"clusterDNS", "clusterDNS:\n- 10.96.0.10\n- 10.96.0.11\n", ""},
		"the last":                    {"tlsCipherSuites", "tlsCipherSuites: [A,\n  B]\n", ""},
		"without a value":             {"staticPodPath", "staticPodPath:\n", ""},
		"nothing":                     {"readOnlyPort", "", ""},
		"nothing in a missing object": {"logging/verbosity", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := yamledit.Unset(byHand, strings.Split(test.path, "/"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Replace(byHand, test.old, test.new, 1), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A mapping that would be empty goes with its last field.
func TestAnEmptyMappingGoes(t *testing.T) {
	got, err := yamledit.Unset("a: 1\nb:\n  c:\n    d: 1\n", []string{"b", "c", "d"})
	if err != nil || got != "a: 1\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// kubeadm writes JSON if its template has JSON, as AKS' does.
func TestJSONStaysJSON(t *testing.T) {
	got, err := yamledit.Set("{\n  \"kind\": \"K\",\n  \"featureGates\": {\"A\": true}\n}\n", []string{"featureGates", "B"}, false)
	if want := "{\n  \"kind\": \"K\",\n  \"featureGates\": {\"B\": false, \"A\": true}\n}\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

// A field that cannot be changed alone is refused, and so is a text that is no single document.
func TestWhatIsNotChanged(t *testing.T) {
	for name, text := range map[string]string{
		"an anchor":         "a: &x 1\nb: *x\n",
		"a block of text":   "a: |\n  one\n  two\n",
		"two documents":     "a: 1\n---\na: 2\n",
		"a list":            "- a: 1\n",
		"nothing":           "",
		"a key on a line":   "? a\n: 1\n",
		"a line end of its": "a: 1\u2028b: 2\n",
		"a text as mapping": "a: 1\nb: {a: 1}\n",
	} {
		path := []string{"a"}
		if strings.HasPrefix(name, "a text as") {
			path = []string{"a", "b"}
		}
		_, err := yamledit.Set(text, path, 2)
		var place *yamledit.PlaceError
		if !errors.As(err, &place) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := yamledit.Set("a: [\n", []string{"a"}, 1); err == nil {
		t.Error("a text that is no YAML is changed")
	}
}

// A field that is added and removed again leaves the text as it was, byte for byte.
func TestSetAndUnsetIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{byHand, "kind: K", "kind: K\n", "{kind: K}", "kind: K\r\na:\r\n  b: 1\r\n",
			"a: {x: 1}\n", "a:\n  x: 1\n# end", "# begin\n\na:\n  - x\n"}).Draw(t, "text")
		path := rapid.SampledFrom([][]string{{"new"}, {"a", "new"}, {"new", "deep", "er"}, {"featureGates", "new"}}).Draw(t, "path")
		value := rapid.OneOf(rapid.Just[any](true), rapid.Map(rapid.Int(), func(i int) any { return i }),
			rapid.Map(rapid.String(), func(s string) any { return s })).Draw(t, "value")
		written, err := yamledit.Set(text, path, value)
		var place *yamledit.PlaceError
		if errors.As(err, &place) {
			t.Skip("refused: ", err)
		}
		if err != nil {
			t.Skip(fmt.Sprint("no YAML: ", err))
		}
		back, err := yamledit.Unset(written, path)
		if err != nil || back != text {
			t.Fatalf("%q became %q and then %q: %v", text, written, back, err)
		}
	})
}

func FuzzSet(f *testing.F) {
	f.Add(byHand, "featureGates", "X")
	f.Add("a: {b: 'x''y', c: \"d\\\"\"}", "a", "b")
	f.Fuzz(func(t *testing.T, text, first, second string) {
		if _, err := yamledit.Set(text, []string{first, second}, true); err == nil {
			return
		}
		if written, err := yamledit.Unset(text, []string{first}); err != nil && written != "" && written != text {
			t.Errorf("an error with a text: %v", err)
		}
	})
}

// A path leads into the items of lists, and Remove leaves an empty mapping where it was, with the comments around it.
func TestRemove(t *testing.T) {
	for name, test := range map[string]struct{ before, path, after string }{
		"of an item":         {"l:\n- a: 1\n  b: 2 # two\n- a: 3\n  b: 4\n", "l/[1]/b", "l:\n- a: 1\n  b: 2 # two\n- a: 3\n"},
		"the only one":       {"a:   # note\n  # why\n  b: 1\nc: 2\n", "a/b", "a: {}   # note\n  # why\nc: 2\n"},
		"only one in braces": {"l: [{a: {b: it's}, c: 1}]\n", "l/[0]/a/b", "l: [{a: {}, c: 1}]\n"},
		"not there":          {"l: [{a: 1}]\n", "l/[1]/a", "l: [{a: 1}]\n"},
	} {
		got, err := yamledit.Remove(test.before, strings.Split(test.path, "/"))
		if err != nil || got != test.after {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.after)
		}
	}
	for text, path := range map[string]string{
		"l:\n- a: 1\n":        "l/[0]/a", // the item would be empty
		"a: &x {b: 1}\nc: *x": "a/b",     // c would change, too
	} {
		if got, err := yamledit.Remove(text, strings.Split(path, "/")); !errors.As(err, new(*yamledit.PlaceError)) {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
	if got, err := yamledit.Set("l:\n- a: 1\n  b:\n    c: 2\n", []string{"l", "[0]", "b", "d"}, true); err != nil || got != "l:\n- a: 1\n  b:\n    c: 2\n    d: true\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// An empty path names no field.
func TestAnEmptyPath(t *testing.T) {
	for name, edit := range map[string]func() (string, error){
		"Set":    func() (string, error) { return yamledit.Set("a: 1\n", nil, "x") },
		"Unset":  func() (string, error) { return yamledit.Unset("a: 1\n", nil) },
		"Remove": func() (string, error) { return yamledit.Remove("a: 1\n", nil) },
	} {
		if text, err := edit(); !errors.As(err, new(*yamledit.PlaceError)) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
