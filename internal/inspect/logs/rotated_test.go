package logs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/logs"
)

func showWith(t *testing.T, show func(*logs.Merger, *logs.Input) error) []logs.Record {
	t.Helper()
	sink := &shown{}
	m := logs.NewMerger(false, sink)
	in := m.Begin()
	failed := make(chan error, 1)
	go func() { failed <- show(m, in) }()
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	return sink.records
}

// The parts of a log that a rotation has renamed are read as far as --since goes back.
func TestRotatedPartsAreRead(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	ago := func(d time.Duration, text string) []byte {
		return []byte("I" + now.Add(-d).Format("0102 15:04:05.000000") + "    1234 server.go:1] " + text + "\n")
	}
	for _, part := range []string{"kubelet-20261129-010500.log", "kubelet.log.1", "kubelet-2026-11-29T01-05-00.000.log"} {
		n := startNode(t)
		const folder = `C:\var\log\kubelet\`
		n.Put(folder+"kubelet.log", ago(time.Hour, "now"))
		n.Put(folder+part, append(ago(4*time.Hour, "too early"), ago(2*time.Hour, "rotated")...))
		n.Put(folder+"kubelet.log.2", ago(9*time.Hour, "older"))
		n.Put(folder+"kubelet.log.3.gz", []byte("packed"))
		n.Put(folder+"other.log", ago(time.Hour, "of another program"))
		if err := n.Files.SetModified(folder+"kubelet.log.2", now.Add(-9*time.Hour)); err != nil {
			t.Fatal(err)
		}
		r := &warnings{}
		o := logs.Options{Sources: []string{"kubelet"}, Tail: -1, Since: now.Add(-3 * time.Hour)}
		records := showWith(t, func(m *logs.Merger, in *logs.Input) error {
			return logs.Show(t.Context(), n.Node, o, m, in, r)
		})
		if got := texts(records); len(got) != 2 || !strings.HasSuffix(got[0], "rotated") || !strings.HasSuffix(got[1], "now") {
			t.Errorf("%s: got %q", part, got)
		}
		if len(r.all) != 1 || !strings.Contains(r.all[0], "kubelet.log.3.gz") {
			t.Errorf("%s: warnings %q", part, r.all)
		}
		if records, err := show(t, n, logs.Options{Sources: []string{"kubelet"}, Tail: 10}); err != nil || len(records) != 1 {
			t.Errorf("%s: without --since: %q, %v", part, texts(records), err)
		}
		found, err := logs.List(t.Context(), n.Node)
		if err != nil || !slices.ContainsFunc(found, func(f logs.Found) bool { return f.Path == folder+part }) {
			t.Errorf("%s is not listed: %+v, %v", part, found, err)
		}
	}
}

// The network plugins' logs are known; their times are those of Go's package log and of zap.
func TestLogsOfNetworkPlugins(t *testing.T) {
	n := startNode(t)
	n.Put(`C:\k\azure-vnet.log`, []byte("2024/01/15 14:29:58 [3456] [cni-net] Plugin azure-vnet version v1.4.22.\n"))
	n.Put(`C:\Windows\System32\azure-vnet-ipam.log`, []byte("2024/01/15 14:29:59 [3456] [cni-ipam] Plugin started.\n"))
	records, err := show(t, n, logs.Options{Sources: []string{"azure-cni"}, Tail: -1})
	if err != nil || len(records) != 2 || records[0].Time.Second() != 58 {
		t.Errorf("%+v, %v", records, err)
	}
}

// A filter by time reports how many lines have none.
func TestLinesWithoutATimeAreReported(t *testing.T) {
	const path = `C:\logs\a.log`
	n := startNode(t)
	for log, want := range map[string]string{
		klog("I", 1, "one") + "\n  a trace\n\n  of two\n": "lines without a time: 2;",
		"one\ntwo\nthree\n":        "lines without a time: 3, which is all",
		klog("I", 1, "one") + "\n": "",
	} {
		n.Put(path, []byte(log))
		r := &warnings{}
		o := logs.Options{Sources: []string{"file:" + path}, Tail: -1, Since: time.Now().Add(-2 * time.Hour), ReportUntimed: true}
		showWith(t, func(m *logs.Merger, in *logs.Input) error {
			return logs.Show(t.Context(), n.Node, o, m, in, r)
		})
		if got := strings.Join(r.all, "\n"); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q", log, got)
		}
	}
}
