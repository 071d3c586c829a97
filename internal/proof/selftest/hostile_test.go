package selftest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/proof/selftest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// attack is a text that a stranger may have put into any field of a report.
const attack = "\x1b[2J\x1b]0;title\x07\u202e</td><script>alert(1)</script><img src=x onerror=alert(2)>\r\nsecond line"

func hostileReport() selftest.Report {
	return selftest.Report{
		Format: 1, Swdt: attack,
		System: selftest.System{Kind: attack, Product: attack, Build: attack, Architecture: attack, OpenSSH: attack,
			Way: attack},
		Claims: []selftest.Result{{ID: attack, Title: attack, Proves: attack, Grade: attack, Outcome: attack,
			Reason: attack, Answers: []selftest.Answer{{Key: attack, Kind: attack, Value: attack}}}},
		Differences: []selftest.Difference{{StandIn: attack, Claim: attack, Key: attack, Here: attack, There: attack}},
		CleanUp:     attack,
	}
}

// saved writes a report to a file.
func saved(t *testing.T, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHostileReportIsShownAsText(t *testing.T) {
	t.Parallel()
	content, err := json.Marshal(hostileReport())
	if err != nil {
		t.Fatal(err)
	}
	hostile, err := selftest.Load(saved(t, content))
	if err != nil {
		t.Fatal(err)
	}
	other := hostileReport()
	other.Claims[0].Answers[0].Value = "another" + attack
	for name, write := range map[string]func(*ui.Page) error{
		"report": hostile.WriteText, "comparison": selftest.Compare(hostile, other).WriteText,
	} {
		var shown bytes.Buffer
		page := ui.NewPage(&shown, false)
		if err := errors.Join(write(page), page.Flush()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(shown.String(), "onerror") {
			t.Fatalf("the %s does not show the text, so nothing is proved:\n%s", name, shown.String())
		}
		if strings.ContainsAny(shown.String(), "\x1b\x07\r\u202e") {
			t.Errorf("the %s has controls of terminals: %q", name, shown.String())
		}
	}
	var html bytes.Buffer
	if err := hostile.WritePage(&html); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(html.String(), "&lt;script&gt;") {
		t.Fatal("the page does not show the text, so nothing is proved")
	}
	for _, markup := range []string{"<script", "<img", "</td><s", "\x1b", "\u202e"} {
		if strings.Contains(html.String(), markup) {
			t.Errorf("the page has %q", markup)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"a huge report":            `{"format": 1, "claims": [{"id": "` + strings.Repeat("a", 17<<20) + `"}]}`,
		"a deep report":            strings.Repeat(`{"claims":[`, 100_000),
		"a report of other types":  `{"format": 1, "claims": {"id": 1}}`,
		"a report without a claim": `{"format": 1, "claims": []}`,
		"another document":         `{"kind": "Node"}`,
		"half a report":            `{"format": 1, "claims": [{"id": "facts"`,
		"nothing":                  "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := saved(t, []byte(content))
			_, err := selftest.Load(path)
			if err == nil {
				t.Fatal("it is accepted")
			}
			if !strings.Contains(err.Error(), path) || len(err.Error()) > 500 {
				t.Errorf("got the error %.600s", err)
			}
		})
	}
}

func TestLoadNamesTheVersionOfAnotherFormat(t *testing.T) {
	t.Parallel()
	_, err := selftest.Load(saved(t, []byte(`{"format": 2, "swdt": "9.1.0\u001b[2J", "claims": {"facts": true}}`)))
	var other *selftest.FormatError
	if !errors.As(err, &other) || other.Format != 2 {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "9.1.0") || strings.Contains(text, "\x1b") {
		t.Errorf("got %q", text)
	}
}

// A claim that was not run, or is not possible here, has not failed: neither its result nor its reason is red.
func TestPageOfAClaimThatWasNotRunIsNotRed(t *testing.T) {
	t.Parallel()
	report := selftest.Report{Claims: []selftest.Result{
		{ID: "off", Outcome: selftest.NotRun, Reason: "the run ended before"},
		{ID: "none", Outcome: selftest.Impossible, Reason: "no such hardware"},
		{ID: "bad", Outcome: selftest.Failed, Reason: "it is broken"},
	}}
	var page bytes.Buffer
	if err := report.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<span class="notRun">the run ended before`, `<span class="impossible">no such hardware`,
		`<span class="failed">it is broken`, `no-repeat local`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if keep := os.Getenv("SWDT_KEEP_PAGE"); keep != "" {
		if err := os.WriteFile(keep, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
