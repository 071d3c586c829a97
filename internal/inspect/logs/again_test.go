package logs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// following is a followed log, over as many connections as necessary.
type following struct {
	t     *testing.T
	node  *nodetest.Node
	sink  *shown
	end   context.CancelFunc
	ended chan error
}

func follow(t *testing.T, n *nodetest.Node, o logs.Options) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{t: t, node: n, sink: &shown{each: make(chan logs.Record)}, end: cancel, ended: make(chan error, 2)}
	m := logs.NewMerger(true, f.sink)
	in := m.Begin()
	o.Follow = true
	go func() { f.ended <- logs.Show(ctx, n.Node, o, m, in, ui.Discard{}) }()
	go func() { f.ended <- m.Run(ctx) }()
	return f
}

func (f *following) expect(want string) {
	f.t.Helper()
	select {
	case r := <-f.sink.each:
		if r.Text != want {
			f.t.Fatalf("got %q, want %q", r.Text, want)
		}
	case err := <-f.ended:
		f.t.Fatalf("it ended before %q: %v", want, err)
	case <-f.t.Context().Done():
		f.t.Fatalf("the test has ended before %q", want)
	}
}

func (f *following) stop() {
	f.end()
	for range 2 {
		if err := <-f.ended; err != nil && !errors.Is(err, context.Canceled) {
			f.t.Error(err)
		}
	}
}

func add(t *testing.T, n *nodetest.Node, path, text string) {
	t.Helper()
	f, err := n.Files.Create(path, platform.CreateAppend)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write([]byte(text))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Each line arrives once, however often the connection is lost and whatever happens to the
// log meanwhile.
func TestFollowThroughLostConnections(t *testing.T) {
	const path = `C:\var\log\kubelet\kubelet.log`
	for name, o := range map[string]logs.Options{
		"as it is":  {Tail: 1},
		"filtered":  {Tail: -1, Grep: pattern(t, "two|three|four|five|rota|anew|last|end")},
		"from then": {Tail: -1, Since: time.Now().Add(-time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t)
			n.Put(path, []byte(klog("I", 1, "two")+"\n"))
			o.Sources = []string{"kubelet"}
			line := func(text string) string {
				return "I" + time.Now().UTC().Format("0102 15:04:05.000000") + " 1 x.go:1] " + text
			}
			var lines []string
			for _, text := range []string{"three", "four", "five", "end of the file before", "rotated",
				"rotated again", "anew", "last"} {
				lines = append(lines, line(text))
			}
			if name == "from then" {
				n.Put(path, []byte(lines[0]+"\n"))
			}
			f := follow(t, n, o)
			if name == "from then" {
				f.expect(lines[0])
			} else {
				f.expect(klog("I", 1, "two"))
				add(t, n, path, lines[0]+"\n")
				f.expect(lines[0])
			}
			n.Cut()
			add(t, n, path, lines[1]+"\n")
			f.expect(lines[1])
			add(t, n, path, lines[2][:20]) // an incomplete line
			n.Cut()
			add(t, n, path, lines[2][20:]+"\n")
			f.expect(lines[2])
			n.Cut()
			add(t, n, path, lines[3]+"\n")
			if err := n.Files.Rename(path, `C:\var\log\kubelet\kubelet-2026.log`, false); err != nil {
				t.Fatal(err)
			}
			add(t, n, path, lines[4]+"\n")
			f.expect(lines[3])
			f.expect(lines[4])
			f.stop()
		})
	}
}

func pattern(t *testing.T, text string) *logs.Pattern {
	t.Helper()
	p, err := logs.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A node that rejects swdt's login is reported once, however many logs it has.
func TestPermanentFailureIsReportedOnce(t *testing.T) {
	n := startNode(t)
	sources := []string{`file:C:\a.log`, `file:C:\b.log`, `file:C:\c.log`, "event:System"}
	for _, source := range sources[:3] {
		n.Put(strings.TrimPrefix(source, "file:"), []byte("one\n"))
	}
	f := follow(t, n, logs.Options{Sources: sources, Tail: -1})
	for range sources[:3] {
		f.expect("one")
	}
	var logins atomic.Int32
	n.Node.OnReconnect(func(context.Context) error {
		logins.Add(1)
		return &node.UnreachableError{Node: "win1", Err: &ssh.AuthError{User: "Administrator", Passwords: 1}}
	})
	n.Cut()
	for range 2 {
		err := <-f.ended
		if err == nil {
			continue // the merger's nil error, since all its inputs have ended
		}
		if count := strings.Count(err.Error(), "log in"); count != 1 {
			t.Errorf("it is said %d times: %v", count, err)
		}
	}
	f.end()
	if tried := logins.Load(); tried != 1 { // more attempts may lock the account
		t.Errorf("%d logins", tried)
	}
}

// Many unparsed lines over a connection that breaks all the time: no line is lost or
// doubled.
func TestNothingIsLostOrDoubled(t *testing.T) {
	n := startNode(t)
	const path, rounds, each = `C:\var\log\kubelet\kubelet.log`, 8, 5000
	n.Put(path, nil)
	f := follow(t, n, logs.Options{Sources: []string{"kubelet"}, Tail: -1, Verbatim: true})
	var want strings.Builder
	for round := range rounds {
		var text strings.Builder
		for i := range each {
			fmt.Fprintf(&text, "line %d of round %d\n", i, round)
		}
		want.WriteString(text.String())
		add(t, n, path, text.String())
		n.Cut()
	}
	var got strings.Builder
	for got.Len() < want.Len() {
		select {
		case r := <-f.sink.each:
			if r.Raw == nil {
				r.Raw = []byte(r.Text + "\n") // the record between two pieces
			}
			got.Write(r.Raw)
		case err := <-f.ended:
			t.Fatal(err)
		}
	}
	if got.String() != want.String() {
		t.Errorf("%d bytes, want %d, and not the same", got.Len(), want.Len())
	}
	f.stop()
}

// Events that were logged while there was no connection arrive once, after a reconnect.
func TestEventsThroughLostConnections(t *testing.T) {
	n := startNode(t)
	log := func(message string) {
		n.Machine.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "Service Control Manager", ID: 7036,
			Level: 4, Message: message})
	}
	log("one")
	f := follow(t, n, logs.Options{Sources: []string{"event:System"}, Tail: 1})
	f.expect("Service Control Manager 7036: one")
	n.Cut()
	log("two")
	f.expect("Service Control Manager 7036: two")
	log("three")
	n.Cut()
	f.expect("Service Control Manager 7036: three")
	f.stop()
}

// The first event of an empty channel counts as new.
func TestFollowAnEmptyChannel(t *testing.T) {
	n := startNode(t)
	const empty = "Microsoft-Windows-Hyper-V-Compute-Operational"
	n.Machine.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "P", ID: 1, Level: 4, Message: "there"})
	f := follow(t, n, logs.Options{Sources: []string{"event:System", "event:" + empty}, Tail: 1})
	f.expect("P 1: there") // after the empty channel was queried
	for _, message := range []string{"first", "second"} {
		n.Machine.LogEvent(simulated.LoggedEvent{Channel: empty, Provider: "P", ID: 2, Level: 4, Message: message})
	}
	f.expect("P 2: first")
	f.expect("P 2: second")
	f.stop()
}

// wide returns text in the encoding of PowerShell 5.1.
func wide(text string, bigEndian bool) (data []byte) {
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		if bigEndian {
			data = append(data, byte(unit>>8), byte(unit))
		} else {
			data = append(data, byte(unit), byte(unit>>8))
		}
	}
	return data
}

func TestUTF16(t *testing.T) {
	const path = `C:\var\log\kubelet\kubelet.log`
	for _, bigEndian := range []bool{false, true} {
		n := startNode(t)
		var text strings.Builder
		for i := range 20_000 { // several blocks
			text.WriteString(klog("I", i%3000, fmt.Sprintf("zeile %d: ä 😀 ઊ", i)) + "\r\n")
		}
		n.Put(path, wide(text.String(), bigEndian))
		lines := strings.Split(strings.TrimSpace(text.String()), "\r\n")
		for _, o := range []logs.Options{{Tail: 3}, {Tail: -1}, {Tail: 9000},
			{Tail: 2, Grep: pattern(t, `zeile 1\d*99: ä 😀`)}, {Tail: -1, Verbatim: true}} {
			o.Sources = []string{"kubelet"}
			records, err := show(t, n, o)
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			for _, r := range records {
				if r.Raw != nil {
					got = append(got, strings.Split(strings.TrimSuffix(string(r.Raw), "\r\n"), "\r\n")...)
					continue
				}
				got = append(got, r.Text)
			}
			want = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !o.Grep.Match(line) })
			if o.Tail >= 0 {
				want = want[len(want)-o.Tail:]
			}
			if !slices.Equal(got, want) {
				t.Errorf("tail %d, grep %v: %d lines, want %d; the first is %q, want %q", o.Tail, o.Grep != nil,
					len(got), len(want), got[0], want[0])
			}
		}
		f := follow(t, n, logs.Options{Sources: []string{"kubelet"}, Tail: 1})
		f.expect(lines[len(lines)-1])
		more := wide("neu 😀\n", bigEndian)[2:]
		add(t, n, path, string(more[:9])) // in the middle of a character
		n.Cut()
		add(t, n, path, string(more[9:]))
		f.expect("neu 😀")
		f.stop()
	}
}
