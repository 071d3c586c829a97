package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

func TestEveryClass(t *testing.T) {
	fixture(t)
	out, all, err := mutants(t, options{most: 1000, least: 50}, "calc")
	if err == nil || !strings.Contains(err.Error(), "below 50.0 %") {
		t.Errorf("error %v, want a kill rate below 50 %%", err)
	}
	got := map[string]class{}
	for _, m := range all.Packages[0].Mutants {
		got[m.name()] = m.Class
	}
	for name, want := range map[string]class{
		"Root: n < zero → not":                          killed,
		"Root: n < zero → <=":                           survived,
		"Root: if n < zero → skip its body":             notReached,
		"Root: return 0, errNegative → nil error":       notReached,
		"Root: i*i < n → <=":                            killed,
		"Root: i++ → i--":                               killed,
		"Count: i++ → i--":                              timeout,
		"Sign: n > 0 → >=":                              killed,
		"Sign: n > 0 → not":                             killed,
		"Sign: 0 → 0+1":                                 killed,
		"Sign: 0 → 0-1":                                 killed,
		"Both: a && b → ||":                             survived,
		"Both: a → not":                                 killed,
		"Unused: n<<1 == 0 || i%2 == 1 && n+1 > 3 → &&": notReached,
		"Unused: continue → drop":                       notReached,
		"Unused: sum += n → sum -= n":                   notReached,
		"Unused: counts[i&1] -= 1 << n → drop":          notReached,
		"Unused: defer time.Sleep(0) → drop":            notReached,
	} {
		if got["calc/calc.go "+name] != want {
			t.Errorf("%s: %q, want %q", name, got["calc/calc.go "+name], want)
		}
	}
	for _, line := range []string{
		"always: killed: calc/calc.go:36 Sign: n > 0 → n > 1",
		"excluded: 1: a log line",
		"excluded: 2: " + mustBeConstant,
	} {
		if !strings.Contains(out, "  "+line+"\n") {
			t.Errorf("the report lacks %q", line)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestTheSeedChooses(t *testing.T) {
	fixture(t)
	chosen := func(seed uint64) (names []string) {
		source, err := load(t.Context(), "calc")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range sample(source.find(), seed, 20) {
			names = append(names, m.String())
		}
		return names
	}
	first := chosen(1)
	if len(first) != 20 || !slices.Equal(first, chosen(1)) {
		t.Errorf("the same seed chose %v, then others", first)
	}
	if slices.Equal(first, chosen(2)) {
		t.Error("another seed chose the same mutants")
	}
}

func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		name, folder, always, exclude string
		printed, err                  string
	}{
		{"a package without tests", "untested", "", "", "0 killed, 0 survived, 3 not reached", "kill rate 0.0 %"},
		{"tests that fail without a mutant", "failing", "", "", "", "Double is wrong"},
		{"a fixed mutant that survives", "calc", "calc/calc.go Both\n  was  a && b\n  now  a\n", "", "always: survived",
			"Both: a && b → a: must be killed"},
		{"a fixed mutant whose text is gone", "calc", "calc/calc.go Both\n  was  a & b\n  now  a\n", "", "",
			"0 times"},
		{"a fixed mutant whose text is not unique", "calc", "calc/calc.go Both\n  was  a\n  now  b\n", "", "", "not once"},
		{"a fixed mutant whose function is gone", "calc", "calc/calc.go All\n  was  a\n  now  b\n", "", "",
			"no function All"},
		{"a fixed mutant whose file is gone", "calc", "calc/a.go Both\n  was  a\n  now  b\n", "", "", "not a file"},
		{"a fixed mutant without a change", "calc", "calc/calc.go Both\n  was  a && b\n", "", "", "not complete"},
		{"an exclusion without a reason", "calc", "", "log", "", "no reason"},
		{"an exclusion of everything", "calc", "", ". # all", "0 of 0 mutants", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			fixture(t)
			replace(t, "always.txt", test.always)
			replace(t, "exclude.txt", test.exclude)
			out, _, err := mutants(t, options{most: 1000, least: 1, match: regexp.MustCompile("Double|Sign: 0")}, test.folder)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if !strings.Contains(out, test.printed) {
				t.Errorf("printed %q, want %q", out, test.printed)
			}
		})
	}
}

func replace(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fixture changes into a new folder with the files of testdata/fixture.txtar.
func fixture(t *testing.T) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/fixture.txtar")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(folder, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
}

// mutants runs the command in the fixture, and returns what it printed and recorded.
func mutants(t *testing.T, o options, folders ...string) (string, report, error) {
	t.Helper()
	o.folders, o.jobs, o.verbose, o.grace = folders, 2, true, 3*time.Second
	o.story = io.Discard
	o.record, o.always, o.exclude = "record.json", "always.txt", "exclude.txt"
	if o.match == nil {
		o.match = regexp.MustCompile("")
	}
	var out strings.Builder
	err := run(t.Context(), &out, o)
	var all report
	if text, readErr := os.ReadFile(o.record); readErr == nil {
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
	}
	return out.String(), all, err
}
