package verdict_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/joshdk/go-junit"
)

// TestJUnitIsReadByOthers reads the JUnit XML with a parser that others have written.
func TestJUnitIsReadByOthers(t *testing.T) {
	r := report(t)
	r.Seconds, r.Begin = 12.5, time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)
	var text bytes.Buffer
	if err := r.WriteJUnit(&text); err != nil {
		t.Fatal(err)
	}
	suites, err := junit.Ingest(text.Bytes())
	if err != nil || len(suites) != 1 {
		t.Fatalf("%d suites, %v", len(suites), err)
	}
	s := suites[0]
	s.Aggregate()
	want := junit.Totals{Tests: 5, Passed: 1, Skipped: 1, Failed: 2, Error: 1}
	want.Duration = s.Totals.Duration
	if diff := cmp.Diff(want, s.Totals); diff != "" {
		t.Errorf("the totals (-want +got)\n%s", diff)
	}
	if s.Name != "swdt e2e" || s.Properties["kubernetes"] != "v1.36.3" || s.Properties["result"] != "error" {
		t.Errorf("the suite is %q with %q", s.Name, s.Properties)
	}
	got := map[string]string{}
	for _, c := range s.Tests {
		name, _, _ := strings.Cut(c.Name, " \uFFFD")
		got[name] = c.Classname + " " + string(c.Status) + " " + c.Duration.String()
		if strings.Contains(c.Name, "[sig-a] b") {
			checkFailure(t, c)
		}
	}
	if diff := cmp.Diff(map[string]string{"[sig-a] a": "sig-a failed 2s", "[sig-a] b": "sig-a failed 2s",
		"[sig-b] c": "sig-b passed 2s", "d": "e2e skipped 0s", "e": "e2e error 0s"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// checkFailure checks the message of a failure and its evidence.
func checkFailure(t *testing.T, c junit.Test) {
	t.Helper()
	if c.Error == nil || !strings.Contains(c.Error.Error(), "failed: ") || !strings.HasPrefix(c.Message, "failed: ") {
		t.Errorf("the failure is %v, %q", c.Error, c.Message)
	}
	for _, want := range []string{"[[ATTACHMENT|run-1/evidence/1-b/evidence.txt]]", "- node win-1 was not Ready",
		"</script><script>alert(1)</script>"} {
		if !strings.Contains(c.SystemOut, want) {
			t.Errorf("the output lacks %q: %q", want, c.SystemOut)
		}
	}
}
