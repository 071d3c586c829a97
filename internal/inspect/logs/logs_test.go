package logs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/inspect/events"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// shown collects records and passes each on.
type shown struct {
	records []logs.Record
	each    chan logs.Record
}

func (s *shown) Record(r logs.Record) error {
	if s.each != nil {
		s.each <- r
		return nil
	}
	s.records = append(s.records, r)
	return nil
}
func (s *shown) Flush() error { return nil }

func (s *shown) texts() (all []string) {
	for _, r := range s.records {
		all = append(all, r.Text)
	}
	return all
}

func show(t *testing.T, n *nodetest.Node, o logs.Options) ([]logs.Record, error) {
	t.Helper()
	sink := &shown{}
	m := logs.NewMerger(false, sink)
	in := m.Begin()
	failed := make(chan error, 1)
	go func() { failed <- logs.Show(t.Context(), n.Node, o, m, in, ui.Discard{}) }()
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sink.records, <-failed
}

func texts(records []logs.Record) (all []string) {
	for _, r := range records {
		all = append(all, r.Source+" "+r.Text)
	}
	return all
}

func startNode(t *testing.T) *nodetest.Node {
	return nodetest.Start(t, "win1", simulated.Options{Preset: simulated.Minimal})
}

// klog returns a line of today, so that its year is known.
func klog(level string, second int, text string) string {
	now := time.Now().UTC().Add(-time.Hour).Truncate(time.Minute)
	return level + now.Add(time.Duration(second)*time.Second).Format("0102 15:04:05.000000") + "       1 x.go:1] " +
		text
}

func logrus(second int, text string) string {
	now := time.Now().UTC().Add(-time.Hour).Truncate(time.Minute)
	return fmt.Sprintf("time=%q level=info msg=%q",
		now.Add(time.Duration(second)*time.Second).Format(time.RFC3339Nano), text)
}

func TestSeveralLogsComeInOrderOfTime(t *testing.T) {
	n := startNode(t)
	n.Put(`C:\var\log\kubelet\kubelet.log`, []byte(klog("I", 1, "one")+"\n"+klog("E", 3, "three")+"\r\n  at stack\n"))
	n.Put(`C:\var\log\containerd\containerd.log`, []byte(logrus(2, "two")+"\n"+logrus(4, "four")+"\n"))
	records, err := show(t, n, logs.Options{Sources: []string{"kubelet", "containerd"}, Tail: 100})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, r := range records {
		order = append(order, r.Source+"/"+r.Level.String())
	}
	want := []string{"kubelet/info", "containerd/info", "kubelet/error", "kubelet/error", "containerd/info"}
	if !slices.Equal(order, want) {
		t.Fatalf("got %q\nwant %q\n%q", order, want, texts(records))
	}
	if records[3].Text != "  at stack" || records[3].Time != records[2].Time {
		t.Errorf("a line of a stack trace: %+v", records[3])
	}
}

func TestOptionsSelectRecords(t *testing.T) {
	n := startNode(t)
	var text strings.Builder
	for i := range 50 {
		level := "I"
		if i%10 == 9 {
			level = "E"
		}
		text.WriteString(klog(level, i, fmt.Sprintf("line %d", i)) + "\n")
	}
	n.Put(`C:\var\log\kubelet\kubelet.log`, []byte(text.String()))
	base := time.Now().UTC().Add(-time.Hour).Truncate(time.Minute)
	grep := func(re string) *logs.Pattern {
		p, err := logs.Compile(re)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, c := range map[string]struct {
		o    logs.Options
		want []int
	}{
		"the last":            {logs.Options{Tail: 2}, []int{48, 49}},
		"none":                {logs.Options{Tail: 0}, nil},
		"more than there are": {logs.Options{Tail: 1000, Since: base.Add(47 * time.Second)}, []int{47, 48, 49}},
		"since":               {logs.Options{Tail: -1, Since: base.Add(46 * time.Second)}, []int{46, 47, 48, 49}},
		"until":               {logs.Options{Tail: -1, Until: base.Add(time.Second)}, []int{0, 1}},
		"level":               {logs.Options{Tail: 3, Level: logline.Error}, []int{29, 39, 49}},
		"grep":                {logs.Options{Tail: -1, Grep: grep(`line (7|1[23])$`)}, []int{7, 12, 13}},
		"grep, ignoring case": {logs.Options{Tail: 1, Grep: grep(`(?i)LINE 4.$`)}, []int{49}},
		"grep without a word": {logs.Options{Tail: -1, Grep: grep(` \d\d\d|\b3$`)}, []int{3}},
	} {
		c.o.Sources = []string{"kubelet"}
		records, err := show(t, n, c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []int
		for _, r := range records {
			var i int
			fmt.Sscanf(r.Text[strings.Index(r.Text, "line "):], "line %d", &i)
			got = append(got, i)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestFollowSurvivesRotationTruncationAndLogsToCome(t *testing.T) {
	n := startNode(t)
	const path = `C:\var\log\kubelet\kubelet.log`
	n.Put(path, []byte("one\ntwo\n"))
	sink := &shown{each: make(chan logs.Record)}
	ctx, cancel := context.WithCancel(t.Context())
	m := logs.NewMerger(true, sink)
	in := m.Begin()
	ended := make(chan error, 2)
	go func() {
		o := logs.Options{Sources: []string{"kubelet", `file:C:\later.log`}, Tail: 1, Follow: true}
		ended <- logs.Show(ctx, n.Node, o, m, in, ui.Discard{})
	}()
	go func() { ended <- m.Run(ctx) }()
	expect := func(want string) {
		t.Helper()
		select {
		case r := <-sink.each:
			if r.Text != want {
				t.Fatalf("got %q, want %q", r.Text, want)
			}
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		}
	}
	add := func(path, text string) {
		t.Helper()
		f, err := n.Files.Create(path, platform.CreateAppend)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expect("two")
	add(path, "three\nfo")
	expect("three")
	add(path, "ur\n")
	expect("four")
	add(path, "without an end")
	if err := n.Files.Rename(path, path+".1", false); err != nil {
		t.Fatal(err)
	}
	add(path, "after the rotation\n")
	expect("without an end")
	expect("after the rotation")
	f, err := n.Files.Create(path, platform.CreateTruncate)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	add(path, "anew\n")
	expect("anew")
	add(`C:\later.log`, "later\n")
	expect("later")
	cancel()
	for range 2 {
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// A rotated log may have a name that matches the pattern too.
func TestFollowPatternThroughRotation(t *testing.T) {
	n := startNode(t)
	n.Put(`C:\logs\a.log`, []byte("one\n"))
	f := follow(t, n, logs.Options{Sources: []string{`file:C:\logs\*.log`}, Tail: -1})
	f.expect("one")
	if err := n.Files.Rename(`C:\logs\a.log`, `C:\logs\a-2026.log`, false); err != nil {
		t.Fatal(err)
	}
	add(t, n, `C:\logs\a.log`, "two\n")
	f.expect("two")
	add(t, n, `C:\logs\b.log`, "another\n")
	f.expect("another")
	f.stop()
}

func TestPods(t *testing.T) {
	n := startNode(t)
	const pods = `C:\var\log\pods\`
	n.Put(pods+`default_web-0_1234\app\0.log`,
		[]byte("2026-11-20T14:00:00.5Z stdout P half \n2026-11-20T14:00:00.5Z stdout F whole\n"))
	n.Put(pods+`default_web-0_1234\app\1.log`, []byte("2026-11-20T14:00:01.5Z stderr F again\n"))
	n.Put(pods+`default_web-01_99\app\0.log`, []byte("2026-11-20T14:00:00.5Z stdout F another\n"))
	records, err := show(t, n, logs.Options{Sources: []string{"pod/default/web-0"}, Tail: -1})
	want := []string{"pod/default/web-0/app half whole", "pod/default/web-0/app again"}
	if got := texts(records); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%q, %v", got, err)
	}
	if records[0].Stream != "stdout" || records[1].Stream != "stderr" {
		t.Errorf("%+v", records)
	}
}

// A runtime splits long lines into pieces, mixes the pieces of both streams, and writes the
// end of output without a newline as a piece that continues.
func TestContainersLinesInPieces(t *testing.T) {
	n := startNode(t)
	const stamp = "2026-11-20T14:00:00.5Z "
	n.Put(`C:\var\log\pods\default_web-0_1234\app\0.log`, []byte(
		stamp+"stdout P {\"level\":\"error\",\n"+
			stamp+"stderr F in between\n"+
			stamp+"stdout F \"msg\":\"needle\"}\n"+
			stamp+"stdout P long and \n"+
			stamp+"stdout F without it\n"+
			stamp+"stdout F another needle\n"+
			stamp+"stderr P last words\n"))
	const long = `{"level":"error","msg":"needle"}`
	for name, c := range map[string]struct {
		o    logs.Options
		want []string
	}{
		"all": {logs.Options{Tail: -1}, []string{"in between", long, "long and without it", "another needle",
			"last words"}},
		"grep":     {logs.Options{Tail: -1, Grep: pattern(t, "needle")}, []string{long, "another needle"}},
		"end":      {logs.Options{Tail: 1, Grep: pattern(t, "words")}, []string{"last words"}},
		"by level": {logs.Options{Tail: -1, Level: logline.Error}, []string{long}},
	} {
		c.o.Sources = []string{"pod/default/web-0"}
		records, err := show(t, n, c.o)
		var got []string
		for _, r := range records {
			got = append(got, r.Text)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q, %v", name, got, c.want, err)
		}
	}
	f := follow(t, n, logs.Options{Sources: []string{"pod/default/web-0"}, Tail: 1})
	f.expect("last words")
	f.stop()
}

func TestMissingLogsAreErrors(t *testing.T) {
	n := startNode(t)
	_, err := show(t, n, logs.Options{Sources: []string{"kubelet"}, Tail: 1})
	var nothing *logs.NothingError
	if !errors.As(err, &nothing) {
		t.Errorf("no log: %v", err)
	}
	_, err = show(t, n, logs.Options{Sources: []string{"nonsense"}, Tail: 1})
	var unknown *logs.UnknownSourceError
	if !errors.As(err, &unknown) {
		t.Errorf("no such source: %v", err)
	}
	_, err = show(t, n, logs.Options{Sources: []string{"event:Nonsense"}, Tail: 1})
	var channel *events.NoChannelError
	if !errors.As(err, &channel) {
		t.Errorf("no such channel: %v", err)
	}
	n.Put(`C:\var\log\kubelet\kubelet.log`, []byte(klog("I", 1, "one")+"\n"))
	records, err := show(t, n, logs.Options{Sources: []string{"kubelet", "event:Nonsense"}, Tail: 1})
	if !errors.As(err, &channel) || len(records) > 0 {
		t.Errorf("a log that is there, and a channel that is not: %q, %v", texts(records), err)
	}
}

func TestEventsAreFilteredOnTheNode(t *testing.T) {
	n := startNode(t)
	base := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	plant := func(channel string, id, level, second int, message string) {
		n.Machine.LogEvent(simulated.LoggedEvent{Channel: channel, Provider: "P", ID: id, Level: level,
			Time: base.Add(time.Duration(second) * time.Second), Message: message, Data: []string{"a<b", message}})
	}
	plant("System", 7036, 4, 1, "kubelet runs")
	plant("System", 7034, 2, 3, "kubelet & co crashed")
	plant("Microsoft-Windows-Hyper-V-Compute-Operational", 11000, 3, 2, "ä slow container")
	plant("System", 7031, 2, 4, "")
	for name, c := range map[string]struct {
		o    logs.Options
		want []int
	}{
		"merged": {logs.Options{Sources: []string{"event:system", "event:hcs"}, Tail: -1},
			[]int{7036, 11000, 7034, 7031}},
		"the last": {logs.Options{Sources: []string{"event:System"}, Tail: 2}, []int{7034, 7031}},
		"by level": {logs.Options{Sources: []string{"event:System"}, Tail: -1, Level: logline.Error},
			[]int{7034, 7031}},
		"by number": {logs.Options{Sources: []string{"event:System"}, Tail: -1, EventIDs: []int{7036, 7031}},
			[]int{7036, 7031}},
		"by time": {logs.Options{Sources: []string{"event:System"}, Tail: -1, Since: base.Add(2 * time.Second),
			Until: base.Add(3 * time.Second)}, []int{7034}},
		"services": {logs.Options{Sources: []string{"event:services"}, Tail: -1}, []int{7036, 7034, 7031}},
		"twice": {logs.Options{Sources: []string{"event:services", "event:services"}, Tail: -1},
			[]int{7036, 7034, 7031}},
		"overlaps": {logs.Options{Sources: []string{"event:services", "event:System"}, Tail: -1},
			[]int{7036, 7034, 7031}},
	} {
		records, err := show(t, n, c.o)
		var got []int
		for _, r := range records {
			got = append(got, r.Event.ID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v, %v", name, got, c.want, err)
		}
	}
	records, err := show(t, n, logs.Options{Sources: []string{"event:system", "event:hcs"}, Tail: -1,
		Level: logline.Warning})
	if want := []string{
		"event:Microsoft-Windows-Hyper-V-Compute-Operational P 11000: ä slow container",
		"event:System P 7034: kubelet & co crashed",
		"event:System P 7031: param1=a<b param2=",
	}; err != nil || !slices.Equal(texts(records), want) {
		t.Errorf("%q, %v", texts(records), err)
	}
}
