package ui_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/ui"
)

// tasks runs two tasks side by side, and a third one that the first one's failure skips.
func tasks(s *ui.Story) {
	b := s.NewBoard("dev")
	cluster, machine, join := b.Add("cluster", ""), b.Add("machine", "win-1"), b.Add("join", "win-1")
	ofCluster, ofNode := b.Reporter(""), b.Reporter("win-1")
	ofNode.Step("before any task")
	cluster.Begin(func(elapsed time.Duration, _ bool) string {
		if elapsed > 20*time.Second {
			return ""
		}
		return "about 20 s"
	})
	machine.Begin(nil)
	ofCluster.Step("starting control-plane")
	ofNode.Step("starting VM")
	time.Sleep(12 * time.Second)
	ofNode.Info("kept line")
	machine.End("changed", "its SSH server answers")
	ui.Done(ofNode)
	time.Sleep(13 * time.Second)
	cluster.End("failed", "no room\nmore")
	ui.Done(ofCluster)
	join.End("skipped", "needs cluster")
}

func TestABoardWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := ui.NewStory(&out, ui.StoryOptions{})
		tasks(s)
		s.End()
		time.Sleep(time.Minute)
		want := `win-1: before any task
dev: cluster begins, took about 20 s before
win-1: machine begins
dev: starting control-plane
win-1: starting VM
`
		text := out.String()
		if !strings.HasPrefix(text, want) {
			t.Errorf("(-want +got):\n%s", cmp.Diff(want, text))
		}
		for _, line := range []string{
			"dev: still starting control-plane, for 10s; cluster for 10s, took about 20 s before\n",
			"win-1: still starting VM, for 10s; machine for 10s\n", "win-1: machine changed after 12.0s\n",
			"dev: still starting control-plane, for 20s; cluster for 20s, took about 20 s before\n",
			"dev: cluster failed after 25.0s\n", "win-1: join skipped: needs cluster\n",
		} {
			if strings.Count(text, line) != 1 {
				t.Errorf("%q is not there once:\n%s", line, text)
			}
		}
	})
}

// On a terminal, the rows of all tasks are below the other lines, in their order, until the story ends.
func TestABoardOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screen{}
		s := ui.NewStory(out, ui.StoryOptions{Terminal: true})
		b := s.NewBoard("dev")
		cluster, machine, join := b.Add("cluster", ""), b.Add("machine", "win-1"), b.Add("join", "win-1")
		cluster.Begin(func(time.Duration, bool) string { return "about 40 s" })
		machine.Begin(nil)
		b.Reporter("").Step("starting control-plane")
		b.Reporter("win-1").Step("a\x1b[2Jb")
		time.Sleep(65 * time.Second)
		machine.End("changed", "its SSH server answers")
		shown := func(lines ...string) {
			t.Helper()
			time.Sleep(time.Second) // until the table is drawn again
			seen := regexp.MustCompile(strings.Join(lines, `[^\n]*\n[^\n]*`))
			if !seen.MatchString(out.String()) {
				text := out.String()
				t.Errorf("no %s at the end of\n%q", seen, text[max(0, len(text)-1000):])
			}
		}
		shown(`STAGE    NODE   STATE      FOR     BEFORE        NOW`,
			`cluster         running    1m0[56]s   about 40 s    starting control-plane`,
			`machine  win-1  changed    1m05s                 its SSH server answers`, `join     win-1  waiting`)
		s.Suspend(func() { _, _ = out.Write([]byte("[question]")) })
		join.Begin(nil)
		b.Reporter("win-1").Info("kept line")
		shown(`(?s)\[question\].*STAGE    NODE`, `cluster         running`, `machine  win-1  changed`,
			`join     win-1  running`)
		s.End()
		text := out.String()
		if !strings.Contains(text, "win-1: kept line\n") || strings.Contains(text, "\x1b[2Jb") {
			t.Errorf("the kept line is missing, or a step controls the terminal:\n%q", text)
		}
	})
}

// Downloads count for all tasks that run, since they may share a download.
func TestDownloadsOfTasks(t *testing.T) {
	b := ui.NewStory(&bytes.Buffer{}, ui.StoryOptions{}).NewBoard("dev")
	earlier, one, two, later := b.Add("a", ""), b.Add("b", "n1"), b.Add("c", "n2"), b.Add("d", "n3")
	earlier.Begin(nil)
	earlier.End("changed", "")
	one.Begin(nil)
	two.Begin(nil)
	ui.Downloading(b.Reporter("n1"))
	later.Begin(nil)
	got := []bool{earlier.Downloads(), one.Downloads(), two.Downloads(), later.Downloads()}
	if diff := cmp.Diff([]bool{false, true, true, false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ui.Downloading(ui.Discard{})
}

func TestNoBoardShowsNothing(t *testing.T) {
	var none *ui.Board
	task := none.Add("cluster", "")
	task.Begin(nil)
	task.End("changed", "")
	if task.Downloads() {
		t.Error("a task of no board has downloads")
	}
}
