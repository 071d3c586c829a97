package selftest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/proof/selftest"
)

func TestStandInsAreReadable(t *testing.T) {
	t.Parallel()
	for _, name := range selftest.StandIns() {
		r, err := selftest.Load("standins/" + name + ".json")
		if err != nil || r.System.Kind != name || len(r.Claims) != len(selftest.Claims()) {
			t.Errorf("%s: %v, kind %q, %d claims", name, err, r.System.Kind, len(r.Claims))
		}
	}
}

// contributed returns a folder with one report.
func contributed(t *testing.T, name string, r selftest.Report) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// strangers returns a report with the text in each field that may have any text.
func strangers(text string) selftest.Report {
	return selftest.Report{
		Format: 1, Swdt: text, CleanUp: text,
		System: selftest.System{Kind: "windows", Product: text, Build: text, Architecture: text, OpenSSH: text, Way: text},
		Claims: []selftest.Result{
			{ID: text, Title: text, Proves: text, Outcome: selftest.Failed, Reason: text},
			{ID: "facts", Outcome: selftest.Passed, Answers: []selftest.Answer{{Key: "architecture", Value: text}}},
		},
		Summary: selftest.Summary{Passed: 999},
	}
}

func TestSeenPageShowsTextsAsCode(t *testing.T) {
	t.Parallel()
	const text = "a|b`c\x1b[2J\u202e\r\n| x | <script>alert(1)</script> [l](http://evil.example) ![i](x) `` @user"
	all, err := selftest.ReadSeen(contributed(t, "windows-1.json", strangers(text)))
	if err != nil {
		t.Fatal(err)
	}
	page := selftest.SeenPage(all)
	if !strings.Contains(page, "<script>") {
		t.Fatal("the page does not show the text, so nothing is proved")
	}
	if strings.ContainsAny(page, "\x1b\r\u202e") || strings.Contains(page, "999") {
		t.Errorf("the page has controls of terminals, or the report's own counts:\n%s", page)
	}
	columns := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| ") {
			if strings.Contains(line, "script") {
				t.Errorf("the text has left its table: %q", line)
			}
			columns = 0
			continue
		}
		if columns == 0 {
			columns = strings.Count(line, "|")
		}
		if got := strings.Count(line, "|"); got != columns {
			t.Errorf("a row has %d marks of cells, want %d: %q", got, columns, line)
		}
		for i, part := range strings.Split(line, "`") {
			if outside := i%2 == 0; outside && strings.ContainsAny(part, "<@!") {
				t.Errorf("the text is not code in %q", line)
			}
		}
	}
}

func TestSeenPageWithoutWindowsSaysSo(t *testing.T) {
	t.Parallel()
	r := strangers("text")
	r.System.Kind = "wine"
	all, err := selftest.ReadSeen(contributed(t, "wine.json", r))
	if err != nil {
		t.Fatal(err)
	}
	page := selftest.SeenPage(all)
	if !strings.Contains(page, "no report of a real Windows was contributed") || !strings.Contains(page, "`text` (wine)") {
		t.Error(page)
	}
}

func TestReadSeenRefuses(t *testing.T) {
	t.Parallel()
	changed := func(change func(r *selftest.Report)) selftest.Report {
		r := strangers("text")
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		file   string
		report selftest.Report
		want   string
	}{
		"a name with a link":   {"a](x).json", strangers("text"), "lower-case letters"},
		"another kind of file": {"report.html", strangers("text"), "lower-case letters"},
		"an unknown system":    {"a.json", changed(func(r *selftest.Report) { r.System.Kind = "real" }), "kind of system"},
		"an unknown outcome":   {"a.json", changed(func(r *selftest.Report) { r.Claims[0].Outcome = "great" }), "has the outcome"},
		"a claim twice":        {"a.json", changed(func(r *selftest.Report) { r.Claims[0].ID = "facts" }), "twice"},
		"too many claims": {"a.json", changed(func(r *selftest.Report) {
			r.Claims = append(r.Claims, make([]selftest.Result, 200)...)
		}), "202 claims"},
		"too many answers": {"a.json", changed(func(r *selftest.Report) {
			r.Claims[0].Answers = make([]selftest.Answer, 101)
		}), "101 answers"},
		"a long text":  {"a.json", strangers(strings.Repeat("x", 4097)), "a text of 4097 bytes"},
		"a large file": {"a.json", strangers(strings.Repeat("x", 100<<10)), "and a report has at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := selftest.ReadSeen(contributed(t, test.file, test.report))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
