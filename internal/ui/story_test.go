package ui_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

func tell(r ui.Reporter) {
	r.Step("stopping %s", "kubelet")
	r.Debug("a detail")
	r.Warn("first\nsecond")
	r.Info("100%% done")
}

func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	s := ui.NewStory(&out, ui.StoryOptions{})
	tell(s.Node("w1"))
	s.Node("").Info("about all")
	s.End()
	want := "w1: stopping kubelet\nw1: warning: first\n    second\nw1: 100% done\nabout all\n"
	if out.String() != want {
		t.Fatalf("got\n%s", out.String())
	}
}

func TestVerbosePrintsDetails(t *testing.T) {
	var out bytes.Buffer
	tell(ui.NewStory(&out, ui.StoryOptions{Verbose: true}).Node("w1"))
	if !strings.Contains(out.String(), "w1: a detail\n") {
		t.Fatalf("got\n%s", out.String())
	}
}

func TestJSONLines(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	s := ui.NewStory(&out, ui.StoryOptions{JSON: true, Terminal: true, Now: func() time.Time { return now }})
	tell(s.Node("w1"))
	var lines []map[string]string
	for line := range strings.Lines(out.String()) {
		var m map[string]string
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, m)
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	warn := lines[1]
	switch {
	case warn["level"] != "warn":
		t.Fatalf("warn[\"level\"] = %q, want %q", warn["level"], "warn")
	case warn["node"] != "w1":
		t.Fatalf("warn[\"node\"] = %q, want %q", warn["node"], "w1")
	case warn["message"] != "first\nsecond":
		t.Fatalf("warn[\"message\"] = %q, want %q", warn["message"], "first\nsecond")
	case warn["time"] != "2026-11-01T12:00:00Z":
		t.Fatalf("warn[\"time\"] = %q, want %q; got %v", warn["time"], "2026-11-01T12:00:00Z", warn)
	}
}

func TestTransferIsReportedEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := ui.NewStory(&out, ui.StoryOptions{}).Node("w1").Transfer("kubelet.exe", 100_000_000)
		for range 25 { // one second each, 4 MB a second
			time.Sleep(time.Second)
			p.Add(4_000_000)
		}
		p.End()
		p.End()
		want := "w1: kubelet.exe 40% of 100.0 MB, 4.0 MB/s, 15s left\n" +
			"w1: kubelet.exe 80% of 100.0 MB, 4.0 MB/s, 5s left\n" +
			"w1: kubelet.exe done, 100.0 MB in 25.0s\n"
		if out.String() != want {
			t.Fatalf("got\n%s", out.String())
		}
	})
}

func TestCutTransferSaysHowFarItCame(t *testing.T) {
	var out bytes.Buffer
	p := ui.NewStory(&out, ui.StoryOptions{}).Node("").Transfer("kubelet.exe", 2000)
	p.Add(500)
	p.End()
	if out.String() != "kubelet.exe stopped at 500 B of 2.0 kB\n" {
		t.Fatalf("got %q", out.String())
	}
}

func TestReportersShareTheStreamLineByLine(t *testing.T) {
	var out bytes.Buffer
	s := ui.NewStory(&out, ui.StoryOptions{})
	var all sync.WaitGroup
	for _, name := range []string{"w1", "w2", "w3", "w4"} {
		all.Go(func() {
			for range 50 {
				s.Node(name).Info("the same text")
			}
		})
	}
	all.Wait()
	counts := map[string]int{}
	for line := range strings.Lines(out.String()) {
		counts[line]++
	}
	if len(counts) != 4 || counts["w3: the same text\n"] != 50 {
		t.Fatalf("mixed lines: %v", counts)
	}
}

// screen collects the output to a terminal. It is safe for concurrent use.
type screen struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

func TestLiveLinesComeAndGo(t *testing.T) {
	out := &screen{}
	s := ui.NewStory(out, ui.StoryOptions{Terminal: true})
	w1, w2 := s.Node("w1"), s.Node("w2")
	w1.Step("stopping kubelet")
	p := w2.Transfer("kubelet.exe", 1000)
	p.Add(250)
	w1.Info("kept line")
	p.End()
	ui.Done(w2)
	s.Suspend(func() { out.Write([]byte("[question]")) })
	w1.Step("starting kubelet")
	s.End()
	w1.Info("after the end")
	w1.Step("not shown any more")

	text := out.String()
	for _, want := range []string{"w1: kept line\n", "[question]", "w1: after the end\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once:\n%q", want, text)
		}
	}
	if strings.Contains(text, "not shown") {
		t.Errorf("a live line after the end:\n%q", text)
	}
	if !strings.HasSuffix(text, "w1: after the end\n") {
		t.Errorf("live lines are left:\n%q", text)
	}
}

func TestLongStepIsReportedWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		story := ui.NewStory(&out, ui.StoryOptions{})
		r := story.Node("n1")
		r.Step("waiting for kubelet")
		time.Sleep(25 * time.Second)
		ui.Done(r)
		time.Sleep(time.Minute)
		r.Step("starting")
		story.End()
		time.Sleep(time.Minute)
		synctest.Wait()
		want := "n1: waiting for kubelet\nn1: still waiting for kubelet, for 10s\nn1: still waiting for kubelet, for " +
			"20s\nn1: starting\n"
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
}
