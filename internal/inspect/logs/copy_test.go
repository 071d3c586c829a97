package logs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/logs"
)

// The lines of a log that is rotated by copying and truncating arrive once, although the
// copy is a new file with the same text. Lines between the last read and the copy are only
// in the copy.
func TestFollowALogThatIsCopiedAndTruncated(t *testing.T) {
	for name, head := range map[string]string{"short": "", "long": strings.Repeat("x", 5000) + "\n"} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t)
			const path = `C:\logs\a.log`
			one, two := klog("I", 1, "the first line of the log"), klog("I", 2, "the second line of the log")
			n.Put(path, []byte(head+one+"\n"))
			f := follow(t, n, logs.Options{Sources: []string{`file:C:\logs\*.log`}, Tail: 1})
			f.expect(one)
			add(t, n, path, two+"\n")
			f.expect(two)
			between, anew, last := klog("I", 3, "between"), klog("I", 4, "anew"), klog("I", 5, "last")
			n.Put(`C:\logs\a-20261122.log`, []byte(head+one+"\n"+two+"\n"+between+"\n"))
			n.Put(path, []byte(anew+"\n"))
			got := []string{f.next(), f.next()}
			slices.Sort(got)
			if !slices.Equal(got, []string{between, anew}) {
				t.Errorf("got %q, want what is new", got)
			}
			add(t, n, path, last+"\n")
			f.expect(last)
			f.stop()
		})
	}
}

// Another log that begins at the same time is not a copy.
func TestFollowALogThatIsNew(t *testing.T) {
	n := startNode(t)
	n.Put(`C:\logs\a.log`, []byte(klog("I", 1, "of the one log")+"\n"))
	f := follow(t, n, logs.Options{Sources: []string{`file:C:\logs\*.log`}, Tail: -1})
	f.expect(klog("I", 1, "of the one log"))
	n.Put(`C:\logs\b.log`, []byte(klog("I", 1, "of the other log")+"\n"))
	f.expect(klog("I", 1, "of the other log"))
	f.stop()
}

// A container's line that arrives in pieces is matched as a whole, whatever the name of its
// source.
func TestGrepOfAContainersFile(t *testing.T) {
	n := startNode(t)
	const path = `C:\var\log\containers\web.log`
	n.Put(path, []byte("2026-11-20T14:00:01.000000000Z stdout P a needle in \n"+
		"2026-11-20T14:00:01.100000000Z stdout F the hay\n"+
		"2026-11-20T14:00:02.000000000Z stdout F no more\n"))
	for _, o := range []logs.Options{{Grep: pattern(t, "hay")}, {Grep: pattern(t, "needle")},
		{Grep: pattern(t, "needle in the hay")}} {
		o.Sources, o.Tail = []string{"file:" + path}, -1
		records, err := show(t, n, o)
		switch {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case len(records) != 1:
			t.Errorf("len(records) = %v, want 1: %+v", len(records), records)
		case records[0].Text != "a needle in the hay":
			t.Errorf("records[0].Text = %q, want %q; %v, %v", records[0].Text, "a needle in the hay", records, err)
		}
	}
}

func (f *following) next() string {
	f.t.Helper()
	select {
	case r := <-f.sink.each:
		return r.Text
	case err := <-f.ended:
		f.t.Fatalf("it ended: %v", err)
	case <-f.t.Context().Done():
		f.t.Fatal("the test has ended")
	}
	return ""
}
