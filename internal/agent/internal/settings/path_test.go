package settings

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEditPath(t *testing.T) {
	tests := []struct {
		name, before string
		add, remove  []string
		after        string
	}{
		{"append", `C:\a;C:\b`, []string{`C:\k`}, nil, `C:\a;C:\b;C:\k`},
		{"empty", ``, []string{`C:\k`}, nil, `C:\k`},
		{"after a closing semicolon", `C:\a;`, []string{`C:\k`}, nil, `C:\a;C:\k`},
		{"present in other case", `C:\K\;C:\b`, []string{`c:\k`}, nil, `C:\K\;C:\b`},
		{"present with the other slash", `C:/k;C:\b`, []string{`c:\k\`}, nil, `C:/k;C:\b`},
		{"present in quotes", `"C:\Program Files\x";C:\b`, []string{`c:\Program Files\X`}, nil,
			`"C:\Program Files\x";C:\b`},
		{"asked for twice", `C:\a`, []string{`C:\k`, `c:\K\`}, nil, `C:\a;C:\k`},
		{"remove all of them", `C:\k;C:\a;;c:\K\;C:\b`, nil, []string{`C:\k`}, `C:\a;;C:\b`},
		{"remove the last", `C:\a;C:\k`, nil, []string{`C:\k`}, `C:\a`},
		{"remove what is not there", `C:\a;;`, nil, []string{`C:\k`}, `C:\a;;`},
		{"move to the end", `C:\k;C:\a`, []string{`C:\k`}, []string{`C:\k`}, `C:\a;C:\k`},
		{"a semicolon in quotes", `"C:\a;C:\k";C:\b`, nil, []string{`C:\k`}, `"C:\a;C:\k";C:\b`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if after := editPath(test.before, test.add, test.remove); after != test.after {
				t.Fatalf("got %q, wanted %q", after, test.after)
			}
		})
	}
}

func TestEditPathOnAnyPath(t *testing.T) {
	folder := rapid.SampledFrom([]string{`C:\k`, `c:\K\`, `C:/k`, `C:\Windows`, `%SystemRoot%\system32`,
		`C:\Program Files\x`})
	entry := rapid.OneOf(folder, rapid.SampledFrom([]string{"", " ", `"C:\a;b"`, `"C:\k"`}))
	rapid.Check(t, func(t *rapid.T) {
		before := strings.Join(rapid.SliceOf(entry).Draw(t, "path"), ";")
		add := rapid.SliceOfN(folder, 0, 3).Draw(t, "add")
		remove := rapid.SliceOfN(folder, 0, 2).Draw(t, "remove")
		after := editPath(before, add, remove)

		if strings.Join(splitPath(before), ";") != before {
			t.Fatalf("%q is split into %q", before, splitPath(before))
		}
		if again := editPath(after, add, nil); again != after {
			t.Fatalf("not idempotent: %q, %q", after, again)
		}
		for _, f := range add {
			if n := count(splitPath(after), f); n < 1 {
				t.Fatalf("%q is not in %q", f, after)
			}
		}
		for _, f := range remove {
			if n := count(splitPath(after), f); n > 0 && !hasFolder(add, f) {
				t.Fatalf("%q is still in %q", f, after)
			}
		}
		touched := func(e string) bool { return e == "" || hasFolder(add, e) || hasFolder(remove, e) }
		was := slices.DeleteFunc(splitPath(before), touched)
		is := slices.DeleteFunc(splitPath(after), touched)
		if !slices.Equal(was, is) {
			t.Fatalf("other folders were %q and are %q", was, is)
		}
	})
}

func count(entries []string, folder string) (n int) {
	for _, e := range entries {
		if sameFolder(e, folder) {
			n++
		}
	}
	return n
}
