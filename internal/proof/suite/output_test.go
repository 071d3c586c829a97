package suite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// follow returns what a follower reports for an output, which it reads in two parts.
func follow(t testing.TB, text []byte, cut int, specs ...string) (seen []Progress) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "output")
	var all []Spec
	for _, name := range specs {
		all = append(all, Spec{Name: name})
	}
	if err := os.WriteFile(path, text[:cut], 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := newFollower(path, all, func(p Progress) { seen = append(seen, p) })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.read(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if size, err := f.read(); err != nil || size != int64(len(text)) {
		t.Fatal(size, err)
	}
	return seen
}

const output = `Will run 3 of 9 specs
------------------------------
[sig-a] A one [sig-a, Slow]
/x/a.go:7
  STEP: Creating
• [FAILED] [1.234 seconds]
[sig-a] A one
------------------------------
S
------------------------------
[sig-a] A two
/x/a.go:9
S [SKIPPED] [0.001 seconds]
------------------------------
[sig-a] A three [x]
• [2.000 seconds]
`

func TestProgress(t *testing.T) {
	var ended []string
	for _, p := range follow(t, []byte(output), 70, "[sig-a] A one", "[sig-a] A two", "[sig-a] A three [x]") {
		if p.Ended != "" {
			ended = append(ended, string(p.Outcome)+" "+p.Ended)
		}
	}
	want := []string{"failed [sig-a] A one", "skipped [sig-a] A two", "passed [sig-a] A three [x]"}
	if diff := cmp.Diff(want, ended); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzFollow(f *testing.F) {
	f.Add([]byte(output), 3)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		cut = max(0, min(cut, len(text)))
		for _, p := range follow(t, text, cut, "[sig-a] A one", "") {
			if p.Failed+p.Skipped > p.Done {
				t.Errorf("%+v", p)
			}
		}
	})
}
