package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
	"github.com/swdt-dev/swdt/internal/inspect/stats/report"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
)

// recorded returns a recording of two callers of a runtime that keeps one sample, as
// containerd 1.7.12 does: every other answer is 0.
func recorded(t *testing.T, runtime string, broken bool, pod string) report.Recorded {
	t.Helper()
	workdir.Change(t, t.TempDir())
	began := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	const path = "recording.swdt"
	w, err := record.Create(path, record.Meta{Started: began, Interval: "1s", Callers: 1,
		Sources: []stats.Source{stats.CRI}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddNode(record.NodeFacts{Name: "win", Windows: "Windows Server 2022 Datacenter 20348.2849", Cores: 4,
		Runtime: runtime, Note: "simulated"}); err != nil {
		t.Fatal(err)
	}
	for i := range 90 {
		for caller := range 2 {
			used := stats.Value(uint64(float64(i) * 0.47 * 1e9))
			rate := stats.Value(uint64(0.47e9 + float64(i%5-2)*7e6))
			if broken && (i+caller)%3 == 0 {
				rate = stats.Value(0)
			}
			if broken && i == 50 {
				rate = stats.Value(1506845973)
			}
			at := began.Add(time.Duration(i)*time.Second + time.Duration(caller)*6*time.Millisecond)
			err := w.Add(stats.Reading{Node: "win", Source: stats.CRI, Caller: caller, Received: at,
				Latency: 4 * time.Millisecond, Cores: 4, Samples: []stats.Sample{{
					Container: stats.Container{Node: "win", ID: "1", Namespace: "cpu", Pod: pod, Name: "burn"},
					Taken:     at.Add(-time.Millisecond),
					Reported:  rate, Counter: used, Memory: stats.Value(121_100_000), Limit: 0.5,
				}}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := report.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	r.Name = filepath.Base(runtime)
	return r
}

func story(t *testing.T) []byte {
	t.Helper()
	a, b := recorded(t, "containerd v1.7.12", true, "cpulimittest"),
		recorded(t, "containerd v2.5.0", false, "cpulimittest")
	var page bytes.Buffer
	if err := report.Page(&page, a, &b); err != nil {
		t.Fatal(err)
	}
	return page.Bytes()
}

func TestPageIsComplete(t *testing.T) {
	page := string(story(t))
	for _, want := range []string{"cpu/cpulimittest/burn", "Windows Server 2022 Datacenter 20348.2849",
		"containerd v1.7.12", "zero ", "above 2", "1 + 1", "4.0 ms"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in it", want)
		}
	}
	for _, never := range []string{"src=", "href=", "@import", "url(", "fetch("} {
		if strings.Contains(page, never) {
			t.Errorf("it has %q in it", never)
		}
	}
}

func TestNamesCannotBreakThePage(t *testing.T) {
	const evil = `</script><script>alert(1)</script><img src=x>`
	var page bytes.Buffer
	if err := report.Page(&page, recorded(t, evil, true, evil), nil); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<script>alert") || strings.Contains(page.String(), "<img") {
		t.Error("a pod's name became part of the page")
	}
}

// The CPU time that a container used between two recordings is no fault of the second one.
func TestRecordingsInOneFile(t *testing.T) {
	const path, each = "recording.swdt", 30
	workdir.Change(t, t.TempDir())
	counter := 0.0
	for n, cores := range []float64{0.05, 0.47} {
		began := time.Date(2026, 11, 20, 15+n, 0, 0, 0, time.UTC) // the container is idle between the recordings
		w, err := record.Create(path, record.Meta{Started: began, Sources: []stats.Source{stats.CRI},
			Tolerance: stats.DefaultTolerance})
		if err != nil {
			t.Fatal(err)
		}
		for i := range each {
			counter += cores * 1e9
			at := began.Add(time.Duration(i) * time.Second)
			if err := w.Add(stats.Reading{Node: "win", Source: stats.CRI, Received: at, Cores: 4,
				Samples: []stats.Sample{{
					Container: stats.Container{Node: "win", ID: "1", Pod: "p", Name: "c"}, Taken: at,
					Reported: stats.Value(uint64(cores * 1e9)), Counter: stats.Value(uint64(counter)),
				}}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := report.Load(path)
	if err != nil || len(r.Sources) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	sum := r.Sources[0]
	switch {
	case len(sum.Verdicts) > 0:
		t.Errorf("len(sum.Verdicts) = %v, want 0: %+v", len(sum.Verdicts), sum.Verdicts)
	case sum.Seconds != 2*(each-1):
		t.Errorf("sum.Seconds = %v, want %v", sum.Seconds, 2*(each-1))
	case sum.Samples != 2*each:
		t.Errorf("sum.Samples = %v, want %v", sum.Samples, 2*each)
	case sum.Ratio.Max > 1.01:
		t.Errorf("sum.Ratio.Max = %v, want at most 1.01; %+v", sum.Ratio.Max, sum)
	}
}

// A runtime that reports no rate, or a container that was seen once, has a dash in the list: 0.000 would be a measurement.
func TestWithoutAReportedRateTheListHasADash(t *testing.T) {
	workdir.Change(t, t.TempDir())
	began := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	w, err := record.Create("r.swdt", record.Meta{Started: began, Sources: []stats.Source{stats.CRI}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		at := began.Add(time.Duration(i) * time.Second)
		reading := stats.Reading{Node: "win", Source: stats.CRI, Received: at, Cores: 4, Samples: []stats.Sample{{
			Container: stats.Container{ID: "1", Pod: "silent", Name: "c"}, Taken: at, Counter: stats.Value(uint64(i) * 250e6)}}}
		if i == 0 {
			reading.Samples = append(reading.Samples, stats.Sample{Container: stats.Container{ID: "2", Pod: "once", Name: "c"},
				Taken: at, Reported: stats.Value(0), Counter: stats.Value(1)})
		}
		if err := w.Add(reading); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := report.Load("r.swdt")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := report.Page(&page, r, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<td>–</td><td>–</td>", "<td>–</td><td>0.000</td>"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestNoRecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut") // before any source had answered
	w, err := record.Create(cut, record.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, p := range []string{path, path + ".missing", cut} {
		if _, err := report.Load(p); err == nil {
			t.Errorf("%s was read", p)
		}
	}
}

// crowd returns the page of 200 containers, one of which is busy.
func crowd(t *testing.T) []byte {
	t.Helper()
	workdir.Change(t, t.TempDir())
	began := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	w, err := record.Create("crowd.swdt", record.Meta{Started: began, Interval: "1s",
		Sources: []stats.Source{stats.CRI}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		at := began.Add(time.Duration(i) * time.Second)
		reading := stats.Reading{Node: "win", Source: stats.CRI, Received: at, Latency: 4 * time.Millisecond, Cores: 4}
		for n := range 200 {
			container, use := stats.Container{Node: "win", ID: strconv.Itoa(n), Namespace: "default",
				Pod: "pod-" + strconv.Itoa(n+1), Name: "idle"}, 0.001
			if n == 166 {
				container.Name, use = "busy", 0.735
			}
			reading.Samples = append(reading.Samples, stats.Sample{
				Container: container, Taken: at, Reported: stats.Value(uint64(use * 1e9)),
				Counter: stats.Value(uint64(float64(i) * use * 1e9)),
			})
		}
		if err := w.Add(reading); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := report.Load("crowd.swdt")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := report.Page(&page, r, nil); err != nil {
		t.Fatal(err)
	}
	if keep := os.Getenv("SWDT_KEEP_PAGE"); keep != "" {
		if err := os.WriteFile(keep, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return page.Bytes()
}
