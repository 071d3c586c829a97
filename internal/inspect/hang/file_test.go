package hang_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/hang"
	"github.com/swdt-dev/swdt/internal/ui"
)

func saved(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A document is a claim: its waits and verdict are computed anew.
func TestADocumentIsAnalysedAnew(t *testing.T) {
	n := hang.Node{Processes: []hang.Process{process(t, hang.Shim, read(t, "windows-containers-469"))}}
	n.Name = "win-1"
	n.Verdict, n.Remedy = "nothing waits", "delete everything"
	content, err := json.Marshal(hang.Report{Format: hang.Format, Nodes: []hang.Node{n}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := hang.Open(saved(t, string(content)))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Nodes[0]; len(got.Waits) != 1 || !strings.Contains(got.Verdict, "terminate compute system") ||
		strings.Contains(got.Remedy, "everything") {
		t.Errorf("%+v", got)
	}
}

func TestAFileOfAStrangerIsTamed(t *testing.T) {
	const secret = "password=hunter2hunter2"
	hostile := `{"format":"swdt-dump/1","nodes":[{"name":"\u001b]0;x\u0007win ` + secret + `","processes":[{"kind":"shim","pid":1,` +
		`"id":"` + strings.Repeat("z", 10_000) + `","error":"\u001b[2J\u202e` + secret + `","groups":[{"count":-5,"minutes":9,"state":"select",` +
		`"ids":[1,2],"frames":["github.com/Microsoft/hcsshim/internal/vmcompute.HcsTerminateComputeSystem\u001b[31m"]},{}]}],` +
		`"calls":[{"method":"\u009b31m"}],"probes":[{"name":"HCS","seconds":5}],"problems":["\r\nfake"]}]}`
	r, err := hang.Open(saved(t, hostile))
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	p := ui.NewPage(&page, false)
	if err := errors.Join(r.WriteText(p), p.Flush()); err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{page.String(), string(document)} {
		if strings.ContainsAny(text, "\x1b\x07\u009b\u202e") || strings.Contains(text, "hunter2") || strings.Contains(text, strings.Repeat("z", 1000)) {
			t.Errorf("%.2000q", text)
		}
	}
}

func TestOtherFilesAreNoDump(t *testing.T) {
	groups := strings.TrimSuffix(strings.Repeat(`{},`, 20_001), ",")
	for name, content := range map[string]string{
		"empty": "", "text": "hello", "JSON": `{"a":1}`, "list": `[]`, "cut": `{"format":"swdt-dump/1","nodes":[{`,
		"another format": `{"format":"swdt-dump/9"}`, "types": `{"format":"swdt-dump/1","nodes":[{"processes":5}]}`,
		"deep": strings.Repeat(`{"nodes":[`, 20_000), "groups": `{"format":"swdt-dump/1","nodes":[{"processes":[{"groups":[` + groups + `]}]}]}`,
	} {
		_, err := hang.Open(saved(t, content))
		var no *hang.NoDumpError
		if !errors.As(err, &no) || len(err.Error()) > 2000 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := hang.Open(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Goroutines with the same numbers and functions did not move; others did, even if they do the same.
func TestWhatMovedBetweenTwoDumps(t *testing.T) {
	stuck := read(t, "windows-containers-469")
	report := func(at int, text string, handles uint32) hang.Report {
		p := process(t, hang.Shim, text)
		p.Handles = handles
		n := hang.Node{Processes: []hang.Process{p}}
		n.Name = "win-1"
		n.Analyse()
		return hang.Report{Format: hang.Format, Created: time.Date(2026, 11, 30, 10, at, 0, 0, time.UTC), Nodes: []hang.Node{n}}
	}
	first := report(0, stuck, 100)
	for name, want := range map[string]struct {
		second            hang.Report
		stuck, moved, new int
	}{
		"the same":   {report(1, strings.ReplaceAll(stuck, "4 minutes", "5 minutes"), 130), 1, 0, 0},
		"others":     {report(1, strings.NewReplacer("goroutine 80", "goroutine 90").Replace(stuck), 130), 0, 1, 1},
		"it is over": {report(1, read(t, "idle"), 130), 0, 1, 0},
	} {
		for _, c := range []hang.Comparison{hang.Compare(first, want.second), hang.Compare(want.second, first)} {
			d := c.Nodes[0]
			if len(d.Stuck) != want.stuck || len(d.Moved) != want.moved || len(d.New) != want.new || c.Seconds != 60 ||
				d.Processes[0].Handles != 30 || d.Processes[0].State != "same" {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
	restarted := report(1, stuck, 1)
	restarted.Nodes[0].Processes[0].PID = 8
	restarted.Nodes[0].Analyse()
	if d := hang.Compare(first, restarted).Nodes[0]; len(d.Stuck) != 0 || d.Processes[0].State != "ended" || d.Processes[1].State != "started" {
		t.Errorf("%+v", d)
	}
}

// log returns the log of a program that was asked for its goroutines several times.
func log(dumps ...string) string {
	var text strings.Builder
	for _, dump := range dumps {
		text.WriteString("level=info msg=other\n=== BEGIN goroutine stack dump ===\n" + dump + "\n=== END goroutine stack dump ===\n")
	}
	return text.String()
}

// A log has the dumps of several moments: they are not mixed, and the report names the one that was read.
func TestALogWithSeveralDumps(t *testing.T) {
	stuck := read(t, "windows-containers-469")
	for name, c := range map[string]struct {
		text    string
		waits   int
		problem string
	}{
		"over":   {log(stuck, read(t, "idle")), 0, "the file has 2 dumps: this is number 2, the last complete one"},
		"cut":    {log(stuck) + "=== BEGIN goroutine stack dump ===\n" + read(t, "idle"), 1, "the file has 2 dumps: this is number 1, the last complete one"},
		"no end": {"=== BEGIN goroutine stack dump ===\n" + stuck, 1, "the dump has no end"},
		"one":    {log(stuck), 1, ""},
	} {
		r, err := hang.Open(saved(t, c.text))
		if err != nil {
			t.Fatal(err)
		}
		n := r.Nodes[0]
		if len(n.Waits) != c.waits || strings.Join(n.Problems, "; ") != c.problem || n.Processes[0].Cut != (name == "no end") {
			t.Errorf("%s: %d waits, problems %q, cut: %t", name, len(n.Waits), n.Problems, n.Processes[0].Cut)
		}
	}
}

// The goroutines of one program in two files of text are compared, whatever the files are called.
func TestTwoTextsAreCompared(t *testing.T) {
	open := func(text string) hang.Report {
		r, err := hang.Open(saved(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	stuck := open(read(t, "windows-containers-469"))
	later := open(strings.ReplaceAll(read(t, "windows-containers-469"), "4 minutes", "5 minutes"))
	c := hang.Compare(stuck, later)
	if len(c.Nodes) != 1 || len(c.Nodes[0].Stuck) != 1 || c.Nodes[0].Processes[0].State != "same" ||
		c.Nodes[0].Name != stuck.Nodes[0].Name+" and "+later.Nodes[0].Name {
		t.Errorf("%+v", c)
	}
	other := open(read(t, "75299-properties")) // of kubelet
	if c := hang.Compare(stuck, other); len(c.Nodes) != 0 {
		t.Errorf("two programs: %+v", c)
	}
}
