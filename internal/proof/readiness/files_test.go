package readiness_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/joshdk/go-junit"

	"github.com/swdt-dev/swdt/internal/proof/readiness"
	"github.com/swdt-dev/swdt/internal/testing/browsertest"
)

// evil is text of a node that must neither control a terminal nor become markup.
const evil = "\x1b]0;evil\a\x1b[2J</script><script>alert(1)</script><img src=x onerror=alert(1)>]]>&\x00\u202e"

// hostileReport returns a report with each result, whose texts are hostile.
func hostileReport(t *testing.T) (r readiness.Report, folder string) {
	t.Helper()
	long := strings.Repeat("x", 300)
	r = readiness.Report{Cluster: "https://api" + evil, Kubernetes: "v1.36.3" + evil, Seconds: 12.5,
		Begin: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC),
		Cases: []readiness.CaseResult{
			{ID: "a", Category: "pods", Proves: "A pod starts", Result: readiness.Proved, Seconds: 2,
				Nodes: []readiness.NodeResult{{Name: "win-1" + evil, Build: "10.0.20348.1", Result: readiness.Proved, Seconds: 2}}},
			{ID: "b", Category: "pods", Proves: "A pod ends", Result: readiness.Failed, Message: "first" + evil + "\nsecond",
				Seconds: 3, Nodes: []readiness.NodeResult{
					{Name: "win-1", Result: readiness.Failed, Message: "first" + evil + "\nsecond"}}},
			{ID: "c", Category: "network", Proves: "A name is resolved", Result: readiness.NotPossible, Message: "no " + long,
				Specs: []readiness.SpecResult{
					{Name: "[sig-x] " + evil + long, Result: readiness.NotPossible, Message: evil}}},
			{ID: "d", Category: "network", Proves: "A port is open", Result: readiness.NotRun, Message: evil},
		}}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	counted, err := readiness.ReadReport(text, "r")
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	if err := counted.Save(folder); err != nil {
		t.Fatal(err)
	}
	return counted, folder
}

// TestJUnitIsReadByOthers reads the JUnit XML with a parser that others have written. A case that was not proved
// never passes.
func TestJUnitIsReadByOthers(t *testing.T) {
	_, folder := hostileReport(t)
	suites, err := junit.IngestFile(filepath.Join(folder, readiness.JUnitName))
	if err != nil || len(suites) != 1 {
		t.Fatalf("%d suites, %v", len(suites), err)
	}
	s := suites[0]
	s.Aggregate()
	want := junit.Totals{Tests: 4, Passed: 1, Skipped: 1, Failed: 1, Error: 1, Duration: 5 * time.Second}
	if diff := cmp.Diff(want, s.Totals); diff != "" {
		t.Errorf("the totals (-want +got)\n%s", diff)
	}
	if s.Name != "swdt readiness" ||
		s.Properties["summary"] != "1 of 4 cases proved, 1 failed, 1 not possible here, 1 not run in 12.5s" {
		t.Errorf("the suite is %q with %q", s.Name, s.Properties)
	}
	got := map[string]string{}
	for _, c := range s.Tests {
		got[c.Name] = c.Classname + " " + string(c.Status)
		if c.Name == "b" && (c.Error == nil || !strings.Contains(c.Error.Error(), "<script>alert(1)</script>") ||
			!strings.HasSuffix(c.Error.Error(), "\nsecond")) {
			t.Errorf("the failure is %v", c.Error)
		}
		if c.Name == "c" && !strings.Contains(c.SystemOut, "not possible: [sig-x] ") {
			t.Errorf("the output is %q", c.SystemOut)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "pods passed", "b": "pods failed", "c": "network skipped",
		"d": "network error"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSavedReportIsRead reads the report that Save has written.
func TestSavedReportIsRead(t *testing.T) {
	saved, folder := hostileReport(t)
	read, err := readiness.LoadReport(filepath.Join(folder, readiness.ReportName))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved, read); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	page, err := os.ReadFile(filepath.Join(folder, readiness.PageName))
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(page), "\x00\x1b\a\u202e") {
		t.Error("the page has control characters")
	}
}

// TestThePageInABrowser opens the page of a report with hostile texts, on a wide screen and on a phone, in
// light and dark. No text becomes markup, and nothing is fetched.
func TestThePageInABrowser(t *testing.T) {
	_, folder := hostileReport(t)
	for _, width := range []int{1400, 400} {
		page := browsertest.Open(t, filepath.Join(folder, readiness.PageName), width, 900)
		if n := browsertest.Eval[int](page, `document.querySelectorAll("script, img, iframe, link").length`); n != 0 {
			t.Errorf("%d elements of the page come from texts of nodes", n)
		}
		const verdicts = `Array.from(document.querySelectorAll(".verdict"), e => e.textContent)`
		want := []string{"proved", "failed", "not possible", "not run"}
		if diff := cmp.Diff(want, browsertest.Eval[[]string](page, verdicts)); diff != "" {
			t.Errorf("the verdicts (-want +got)\n%s", diff)
		}
		page.LooksRight()
	}
}
