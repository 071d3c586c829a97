package verdict_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/evidence"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/proof/verdict"
	"github.com/swdt-dev/swdt/internal/ui"
)

// evil is text of a container that must neither control a terminal nor become markup.
const evil = "\x1b]0;evil\a\x1b[2J</script><script>alert(1)</script><img src=x onerror=alert(1)>]]>&\x00\u202e"

// runs returns reports of runs; each word has the outcome of a spec in each run, as p, f, s or n.
func runs(specs map[string]string) (all []suite.Report) {
	for name, outcomes := range specs {
		for i, letter := range outcomes {
			for len(all) <= i {
				all = append(all, suite.Report{})
			}
			r := suite.Result{Spec: suite.Spec{Name: name}, Seconds: float64(i + 1)}
			switch letter {
			case 'p':
				r.Outcome = suite.Passed
			case 'f':
				r.Outcome, r.Message, r.Output = suite.Failed, "failed: "+evil, evil
			case 's':
				r.Outcome, r.Message = suite.Skipped, "not here"
			case 'n':
				r.Outcome, r.Message = suite.NotRun, "the run ended before it"
			}
			all[i].Results = append(all[i].Results, r)
		}
	}
	return all
}

func TestVerdicts(t *testing.T) {
	got := map[string]string{}
	for _, s := range verdict.Judge(runs(map[string]string{"a": "ppp", "b": "fff", "c": "pfpfp", "d": "sss", "e": "n",
		"g": "p", "h": "sp", "i": "ns", "j": "np"})) {
		got[s.Name] = s.Words()
	}
	want := map[string]string{"a": "passed (3 of 3)", "b": "failed (3 of 3)", "c": "flaky (2 of 5 failed)", "d": "skipped",
		"e": "not run", "g": "passed", "h": "passed", "i": "skipped", "j": "passed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	flaky := verdict.Judge(runs(map[string]string{"c": "pfpfp"}))[0]
	if diff := cmp.Diff(verdict.Spread{Min: 1, Median: 3, Max: 5}, flaky.Seconds); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestResults(t *testing.T) {
	for _, test := range []struct {
		specs map[string]string
		err   error
		want  string
	}{
		{map[string]string{"a": "p", "b": "s"}, nil, verdict.AllPassed},
		{map[string]string{"a": "p", "b": "f"}, nil, verdict.SomeFailed},
		{map[string]string{"a": "pf"}, nil, verdict.SomeFailed},
		{map[string]string{"a": "s"}, nil, verdict.NothingProved},
		{map[string]string{"a": "p", "b": "n"}, nil, verdict.HarnessFailed},
		{map[string]string{"a": "p"}, errors.New("crashed"), verdict.HarnessFailed},
	} {
		if r := (verdict.Report{}).Judged(runs(test.specs), test.err); r.Result != test.want {
			t.Errorf("%v, %v: %s, want %s", test.specs, test.err, r.Result, test.want)
		}
	}
}

func report(t *testing.T) verdict.Report {
	t.Helper()
	r := verdict.Report{Cluster: "https://api" + evil, Kubernetes: "v1.36.3", Folder: t.TempDir(), Total: 9,
		Selection: suite.Selection{Focus: []string{evil}}}
	r = r.Judged(runs(map[string]string{"[sig-a] a " + evil: "pf", "[sig-a] b": "ff", "[sig-b] c": "pp", "d": "ss",
		"e": "nn"}), errors.New("ended: "+evil))
	r.AddEvidence(map[string]evidence.Bundle{"[sig-a] b": {Run: 1, Folder: "run-1/evidence/1-b",
		Files: []string{"evidence.txt", "../nodes.tar.gz"}, Causes: []string{"node win-1 was not Ready"},
		Missing: []string{"logs of node win-2: no route to host"}}})
	r.AddEvidence(map[string]evidence.Bundle{"[sig-a] b": {Run: 2, Folder: "javascript:alert(1)/" + evil,
		Files: []string{"javascript:alert(2)", evil}, Causes: []string{evil}, Missing: []string{evil}}})
	return r
}

func TestFilesAreHarmlessAndWhole(t *testing.T) {
	r := report(t)
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(r.Folder, verdict.PageName))
	if err != nil {
		t.Fatal(err)
	}
	forbidden := regexp.MustCompile(
		`(?i)<script|<img|<iframe|<link|<[^>]*\ssrc=|href="[^r#]|@import|url\(|[\x00\x1b\x07]|\x{202e}`)
	if found := forbidden.Find(page); found != nil {
		t.Errorf("the page has %q", found)
	}
	for _, want := range []string{"flaky (1 of 2 failed)", "not run", "&lt;script&gt;", "prefers-color-scheme: dark",
		`<a href="run-1/evidence/1-b/evidence.txt">`, `<a href="run-1/evidence/nodes.tar.gz">`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	junit, err := os.Open(filepath.Join(r.Folder, verdict.JUnitName))
	if err != nil {
		t.Fatal(err)
	}
	defer junit.Close()
	counts := map[string]int{}
	for d := xml.NewDecoder(junit); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			counts[e.Name.Local]++
		}
	}
	want := map[string]int{"testsuites": 1, "testsuite": 1, "properties": 1, "property": 6, "testcase": 5, "failure": 2,
		"skipped": 1, "error": 1, "system-out": 2}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("the elements of JUnit (-want +got)\n%s", diff)
	}
	again, err := verdict.Load(r.Folder)
	if diff := cmp.Diff(r.Summary, again.Summary); diff != "" || err != nil || len(again.Specs) != 5 {
		t.Errorf("%v, %d specs\n%s", err, len(again.Specs), diff)
	}
}

func TestTheTextIsHarmless(t *testing.T) {
	var out bytes.Buffer
	if err := report(t).WriteText(ui.NewPage(&out, false)); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x00\x1b\a\u202e") {
		t.Errorf("%q", out.String())
	}
	if !strings.Contains(out.String(), "\nevidence: ") {
		t.Errorf("the evidence is not named:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "5 of 9 specs in 2 runs: 1 passed, 1 failed, 1 flaky, 1 skipped, 1 not run in ") {
		t.Errorf("%s", out.String())
	}
}

func TestCompare(t *testing.T) {
	before := (verdict.Report{}).Judged(
		runs(map[string]string{"a": "p", "b": "f", "c": "p", "d": "p", "e": "f", "g": "s"}), nil)
	after := (verdict.Report{}).Judged(
		runs(map[string]string{"a": "f", "b": "p", "c": "p", "e": "f", "g": "f", "h": "p"}), nil)
	c := verdict.Compare(before, after)
	var got []string
	for _, s := range c.Specs {
		got = append(got, s.Name+" "+string(s.Change))
	}
	want := []string{"a broken", "d removed", "g other", "h added", "b fixed", "c same", "e same"}
	if diff := cmp.Diff(want, got); diff != "" || !c.Worse() {
		t.Errorf("worse: %t (-want +got)\n%s", c.Worse(), diff)
	}
	if verdict.Compare(before, before).Worse() {
		t.Error("a report is worse than itself")
	}
}

func TestLoadRefusesOtherFiles(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"empty.json": "", "other.json": "{}", "list.json": "[]"} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := verdict.Load(path); err == nil || !strings.Contains(err.Error(), "swdt e2e") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := verdict.Load(folder); err == nil {
		t.Error("a folder without results was read")
	}
}
