package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const record = `{"Action":"run","Package":"swdt/a","Test":"TestOne"}
{"Action":"pass","Package":"swdt/a","Test":"TestOne"}
{"Action":"output","Package":"swdt/a","Test":"TestTwo","Output":"    a_test.go:4: no wine here\n"}
{"Action":"output","Package":"swdt/a","Test":"TestTwo","Output":"--- SKIP: TestTwo (0.00s)\n"}
{"Action":"skip","Package":"swdt/a","Test":"TestTwo"}
{"Action":"skip","Package":"swdt/empty"}
not an event
{"Action":"pass","Package":"swdt/a"}
`

func TestSkips(t *testing.T) {
	for _, test := range []struct {
		name, rules, record string
		printed, err        string
	}{
		{"an unexpected skip fails with its message", "# none\n", record, "1 passed, 0 failed, 1 skipped",
			"swdt/a.TestTwo: a_test.go:4: no wine here"},
		{"an expected skip is listed with its reason", `swdt/a\.TestTwo only on Windows`, record,
			"skipped as expected: swdt/a.TestTwo (only on Windows)", ""},
		{"a rule fits whole names only", `swdt/a\.Test why`, record, "1 skipped", "TestTwo"},
		{"a rule needs a reason", `swdt/a\.TestTwo`, record, "", "has no reason"},
		{"a record without tests fails", "", "", "0 passed", "no test ran"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules, recorded := file(t, test.rules), file(t, test.record)
			var out strings.Builder
			err := run(&out, rules, "", []string{recorded})
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if !strings.Contains(out.String(), test.printed) {
				t.Errorf("printed %q, want %q", out.String(), test.printed)
			}
		})
	}
}

func TestRequiredTests(t *testing.T) {
	const may = "swdt/a\\.TestTwo [kind] needs kind\n"
	for _, test := range []struct{ name, rules, required, err string }{
		{"a skip on a machine without the thing", may, "", ""},
		{"a skip on a machine with it", may, "kind", "swdt/a.TestTwo: a_test.go:4: no wine here"},
		{"no test of the thing passed", may + "swdt/a\\.TestThree [kind] needs kind", "kind", "TestThree)$ matches"},
		{"a test of the thing passed", "swdt/a\\.TestTwo other\nswdt/a\\.TestOne [kind] needs kind", "kind", ""},
		{"no rule names the thing", "swdt/a\\.TestTwo other", "kind", "no expected skip names it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := run(io.Discard, file(t, test.rules), test.required, []string{file(t, record)})
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
