package manage_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/rollout/manage"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

const hash = "0123456789abcdef"

// progress returns three reports of one rollout: two nodes work, one of them fails, the other is updated.
func progress() (all []manage.Report) {
	report := func(r manage.Rollout, nodes ...manage.Node) {
		r.Name, r.Hash, r.Nodes, r.Seen, r.Touched = "kubelet", hash, 10, true, nodes
		all = append(all, manage.Report{Cluster: "https://c", Rollouts: []manage.Rollout{r}})
	}
	old := manage.Node{Name: "w9", Hash: "another", Verdict: "Failed", Reason: "an earlier content"}
	report(manage.Rollout{State: "Rolling", Working: 2, Step: "canary 1 of 2"}, old,
		manage.Node{Name: "w0", Hash: hash}, manage.Node{Name: "w1", Hash: hash, Released: true, Phase: "Working"})
	report(manage.Rollout{State: "Rolling", Working: 1, Updated: 1, Step: "canary 1 of 2"}, old,
		manage.Node{Name: "w0", Hash: hash, Released: true}, manage.Node{Name: "w1", Hash: hash, Verdict: "Updated"})
	report(manage.Rollout{State: "Stopped", Failed: 1, Updated: 1, Message: "1 of 10 nodes failed"}, old,
		manage.Node{Name: "w0", Hash: hash, Verdict: "Failed", Reason: "kubelet exited with 1"},
		manage.Node{Name: "w1", Hash: hash, Verdict: "Updated"})
	return all
}

func at() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestLiveWritesALineForEachChange(t *testing.T) {
	var out bytes.Buffer
	live := &manage.Live{Page: ui.NewPage(&out, false), Now: at}
	for _, r := range progress() {
		for range 2 { // the second time nothing has changed
			if err := live.See(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := `03:04:05 kubelet w0 claimed
03:04:05 kubelet w1 working
03:04:05 kubelet Rolling, 0 of 10 nodes updated, 2 working, canary 1 of 2
03:04:05 kubelet w0 released
03:04:05 kubelet w1 updated
03:04:05 kubelet Rolling, 1 of 10 nodes updated, 1 working, canary 1 of 2
03:04:05 kubelet w0 failed: kubelet exited with 1
03:04:05 kubelet Stopped, 1 of 10 nodes updated, 1 failed: 1 of 10 nodes failed
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("the lines (-want +got):\n%s", diff)
	}
}

func TestLiveRecordsHaveOnlyChanges(t *testing.T) {
	var got [][]string
	live := &manage.Live{Now: at, Record: func(r manage.Report) error {
		var names []string
		for _, one := range r.Rollouts {
			for _, n := range one.Touched {
				names = append(names, n.Name)
			}
		}
		got = append(got, names)
		return nil
	}}
	all := progress()
	all[2].Rollouts[0].Touched[2].Reason = "" // as before
	for _, r := range append(all, all[2]) {
		if err := live.See(r); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([][]string{{"w9", "w0", "w1"}, {"w0", "w1"}, {"w0"}}, got); diff != "" {
		t.Errorf("the nodes of the records (-want +got):\n%s", diff)
	}
}

func TestLiveTableShowsFailuresFirst(t *testing.T) {
	var out bytes.Buffer
	live := &manage.Live{Page: ui.NewPage(&out, false), Screen: livetable.NewScreen(&out), Now: at}
	r := progress()[2]
	r.Rollouts[0].Working = 1
	r.Rollouts[0].Touched = append([]manage.Node{{Name: "v0", Hash: hash, Phase: "Done", Released: true}},
		r.Rollouts[0].Touched...)
	if err := live.See(r); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("\r", "", "\x1b[K", "", "\x1b[2m", "", "\x1b[0m", "", "\x1b[J", "").Replace(out.String())
	var got []string
	for line := range strings.Lines(text) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"ROLLOUT PROGRESS UPDATED WORKING FAILED STEP STATE",
		"kubelet ##++!!.............. 1/10 1 1 - Stopped",
		"kubelet: 1 of 10 nodes failed",
		"",
		"NODE ROLLOUT PHASE REASON",
		"w0 kubelet failed kubelet exited with 1",
		"v0 kubelet checking",
		"03:04:05 Ctrl-C ends the watch; the rollout goes on",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}

func TestEnded(t *testing.T) {
	rollout := func(state string, working int32, seen bool) manage.Rollout {
		return manage.Rollout{State: state, Working: working, Seen: seen}
	}
	for name, test := range map[string]struct {
		rollouts []manage.Rollout
		want     bool
	}{
		"none":             {nil, true},
		"complete":         {[]manage.Rollout{rollout("Complete", 0, true)}, true},
		"stopped":          {[]manage.Rollout{rollout("Stopped", 0, true)}, true},
		"stopped, working": {[]manage.Rollout{rollout("Stopped", 1, true)}, false},
		"an older spec":    {[]manage.Rollout{rollout("Complete", 0, false)}, false},
		"paused":           {[]manage.Rollout{rollout("Paused", 0, true)}, false},
		"waiting":          {[]manage.Rollout{rollout("Waiting", 0, true)}, false},
		"not seen at all":  {[]manage.Rollout{rollout("", 0, false)}, false},
		"one of two":       {[]manage.Rollout{rollout("Aborted", 0, true), rollout("Rolling", 0, true)}, false},
		"both of two":      {[]manage.Rollout{rollout("Aborted", 0, true), rollout("RolledBack", 0, true)}, true},
	} {
		if got := (manage.Report{Rollouts: test.rollouts}).Ended(); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// A node's report and the verdict about it have the same reason, such as log lines.
func TestLinesOfAReasonAreWrittenOnce(t *testing.T) {
	var out bytes.Buffer
	live := &manage.Live{Page: ui.NewPage(&out, false), Now: at}
	r := progress()[2]
	reason := "it did not start\nits last log lines:\n  panic\n"
	for _, n := range []manage.Node{
		{Name: "w0", Hash: hash, Released: true, Phase: "RolledBack", Reason: reason},
		{Name: "w0", Hash: hash, Verdict: "Failed", Reason: reason},
		{Name: "w0", Hash: hash, Verdict: "Failed", Reason: "another\nreason\n"},
	} {
		r.Rollouts[0].Touched = []manage.Node{n}
		if err := live.See(r); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, "Stopped") {
			got = append(got, strings.TrimPrefix(strings.TrimRight(line, "\n"), "03:04:05 kubelet "))
		}
	}
	want := []string{"w0 rolled back: it did not start", "    its last log lines:", "      panic",
		"w0 failed: it did not start", "w0 failed: another", "    reason"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lines (-want +got):\n%s", diff)
	}
}

// A failed node that was deleted since is listed, and counts for the exit code.
func TestFailuresThatHaveGoneAreShown(t *testing.T) {
	report := manage.Report{Rollouts: []manage.Rollout{{
		Name: "kubelet", Hash: hash, Nodes: 3, State: "Rolling", Seen: true, Valid: true, FailedNodes: []string{"w0", "w1"},
		Touched: []manage.Node{{Name: "w1", Hash: hash, Verdict: "Updated"}},
	}}}
	var out bytes.Buffer
	if err := report.WriteText(ui.NewPage(&out, false)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"w0", "w1"} {
		if line := name + "    kubelet  failed  deleted or replaced since\n"; !strings.Contains(out.String(), line) {
			t.Errorf("%q lacks %q", out.String(), line)
		}
	}
	if !report.Bad() {
		t.Error("the report has no failed nodes")
	}
	report.Rollouts[0].Updated = report.Rollouts[0].Nodes
	out.Reset()
	if err := report.WriteText(ui.NewPage(&out, false)); err != nil || strings.Contains(out.String(), "w0") || report.Bad() {
		t.Errorf("when all nodes are updated, failures of before still count: %q, %v", out.String(), err)
	}
	report.Rollouts[0].Updated = 1
	report.Rollouts[0].Touched = []manage.Node{{Name: "w0", Hash: hash, Verdict: "Failed", Reason: "kubelet exited with 1"}}
	out.Reset()
	if err := report.WriteText(ui.NewPage(&out, false)); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "w0") != 1 || !strings.Contains(out.String(), "kubelet exited with 1") {
		t.Errorf("a failed node that is still there is shown as %q", out.String())
	}
	report.Rollouts[0].Touched = []manage.Node{{Name: "w0", Hash: hash, Action: "RollBack", Verdict: "RolledBack"},
		{Name: "w1", Hash: hash, Action: "RollBack"}}
	out.Reset()
	if err := report.WriteText(ui.NewPage(&out, false)); err != nil || strings.Contains(out.String(), "deleted") {
		t.Errorf("failed nodes that were taken back are shown as %q, %v", out.String(), err)
	}
}

// A node writes its reason itself. Its further lines are shown, and cannot pass for lines of other nodes; controls of
// the terminal are escaped.
func TestLinesOfAReason(t *testing.T) {
	r := progress()[2]
	r.Rollouts[0].Touched = []manage.Node{
		{Name: "w0", Hash: hash, Verdict: "Failed", Reason: "it did not start\nits last log lines:\n  panic\n"},
		{Name: "w1", Hash: hash, Verdict: "Failed", Reason: "\nw2    kubelet  updated\r\x1b[A"},
		{Name: "w3", Hash: hash},
	}
	var lines, table bytes.Buffer
	live := &manage.Live{Page: ui.NewPage(&lines, false), Now: at}
	if err := errors.Join(live.See(r), r.WriteText(ui.NewPage(&table, false))); err != nil {
		t.Fatal(err)
	}
	wantLines := `03:04:05 kubelet w0 failed: it did not start
    its last log lines:
      panic
03:04:05 kubelet w1 failed: 
    w2    kubelet  updated\r\x1b[A
03:04:05 kubelet w3 claimed
03:04:05 kubelet Stopped, 1 of 10 nodes updated, 1 failed: 1 of 10 nodes failed
`
	if diff := cmp.Diff(wantLines, lines.String()); diff != "" {
		t.Errorf("the lines (-want +got):\n%s", diff)
	}
	wantTable := `
NODE  ROLLOUT  PHASE    REASON
w0    kubelet  failed   it did not start
    its last log lines:
      panic
w1    kubelet  failed
    w2    kubelet  updated\r\x1b[A
w3    kubelet  claimed
`
	if _, got, _ := strings.Cut(table.String(), "1 of 10 nodes failed\n"); got != wantTable {
		t.Errorf("the table (-want +got):\n%s", cmp.Diff(wantTable, got))
	}
}
