package swap_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func (n *node) history(t *testing.T) []swap.Past {
	t.Helper()
	past, err := swap.History(t.Context(), n.Process("look").Files)
	if err != nil {
		t.Fatal(err)
	}
	return past
}

func TestTheHistoryHasARowForEachTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		old := n.hashAt(t, kubeletExe)
		first := n.stageKubelet(t, "v1.30.0", "")
		first.PreviousVersion = "v1.28.4"
		n.push(t, first)
		n.push(t, n.stageKubelet(t, "v1.31.0", "crash-at-start"))
		n.push(t, swap.Component{Name: "containerd", Destination: containerdExe, Service: "containerd",
			PreviousSHA256: n.hashAt(t, containerdExe)})

		past := n.history(t)
		if len(past) != 3 {
			t.Fatalf("the history has %d rows, want 3: %+v", len(past), past)
		}
		if c := past[0].Components[0]; past[0].Number != 1 || past[0].Result != swap.Committed || past[0].Journal ||
			past[0].Holder != "tester" || !past[0].Ended.After(past[0].Begun) || !c.Brought || c.PreviousSHA256 != old ||
			c.PreviousVersion != "v1.28.4" || c.SHA256 != first.SHA256 || c.Action != swap.ActionReplaced {
			t.Errorf("the first row is %+v", past[0])
		}
		if past[1].Number != 2 || past[1].Result != swap.RolledBack || past[1].FailedComponent != "kubelet" ||
			past[1].Message == "" {
			t.Errorf("the second row is %+v", past[1])
		}
		if c := past[2].Components[0]; past[2].Number != 3 || c.Brought || c.Action != swap.ActionRestarted ||
			c.SHA256 != n.hashAt(t, containerdExe) {
			t.Errorf("the third row is %+v", past[2])
		}
	})
}

// A transaction whose outcome no session has collected is in the history, marked as such, and once only if the power
// was cut between its row and the removal of its journal.
func TestTheHistoryHasTransactionsWhoseJournalIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, p := n.session()
		defer p.Exit()
		id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester", Components: []swap.Component{
			n.stageKubelet(t, "v1.30.0", "")}})
		if err != nil {
			t.Fatal(err)
		}
		if past := n.history(t); len(past) != 1 || !past[0].Journal || past[0].Result != "" || past[0].Number != 1 ||
			!past[0].Ended.IsZero() {
			t.Errorf("while it runs, the history is %+v", past)
		}
		if _, err := swap.Follow(t.Context(), m, id, func(swap.Event) {}); err != nil {
			t.Fatal(err)
		}
		journal := layout.Journals + `\` + id + ".jsonl"
		records := n.read(t, journal)
		if err := swap.Acknowledge(t.Context(), m.Platform, id); err != nil {
			t.Fatal(err)
		}
		n.place(t, journal, records)
		if past := n.history(t); len(past) != 1 || !past[0].Journal || past[0].Result != swap.Committed {
			t.Errorf("with the row and the journal, the history is %+v", past)
		}
		if err := swap.Acknowledge(t.Context(), m.Platform, id); err != nil {
			t.Fatal(err)
		}
		if past := n.history(t); len(past) != 1 || past[0].Journal {
			t.Errorf("after the second acknowledgement, the history is %+v", past)
		}
	})
}

// Another session may acknowledge a transaction at any moment of the look: it is in the history all the same, once.
func TestTheHistoryIsWholeDuringAnAcknowledgement(t *testing.T) {
	for name, moment := range map[string]string{
		"after the journals were listed": layout.Journals,
		"after a journal was read":       ".jsonl",
		"after the history was read":     layout.History,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				n.push(t, n.stageKubelet(t, "v1.30.0", ""))
				m, p := n.session()
				defer p.Exit()
				id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester", Components: []swap.Component{
					n.stageKubelet(t, "v1.31.0", "")}})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := swap.Follow(t.Context(), m, id, func(swap.Event) {}); err != nil {
					t.Fatal(err)
				}
				acknowledge := sync.OnceFunc(func() {
					if err := swap.Acknowledge(t.Context(), m.Platform, id); err != nil {
						t.Error(err)
					}
				})
				past, err := swap.History(t.Context(), watched{n.Process("look").Files, func(path string) {
					if path == moment || strings.HasSuffix(path, moment) && strings.HasPrefix(path, layout.Journals) {
						acknowledge()
					}
				}})
				if err != nil || len(past) != 2 || past[1].ID != id || past[1].Number != 2 || past[1].Result != swap.Committed {
					t.Errorf("the history is %+v, %v", past, err)
				}
				if len(past) == 2 && past[1].Journal && moment != layout.History {
					t.Error("the row has a journal, which is deleted")
				}
			})
		})
	}
}

// watched reports each path that was listed, or that was opened and read.
type watched struct {
	platform.Files
	seen func(path string)
}

func (w watched) List(path string) ([]platform.FileInfo, error) {
	entries, err := w.Files.List(path)
	w.seen(path)
	return entries, err
}

func (w watched) Open(path string) (io.ReadSeekCloser, error) {
	file, err := w.Files.Open(path)
	if err != nil {
		return nil, err
	}
	return watchedFile{file, func() { w.seen(path) }}, nil
}

type watchedFile struct {
	io.ReadSeekCloser
	closed func()
}

func (f watchedFile) Close() error {
	err := f.ReadSeekCloser.Close()
	f.closed()
	return err
}

// The file is bounded in rows and in bytes, whatever a plan contains, and numbers go on.
func TestTheHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		var rows strings.Builder
		for i := range 1200 {
			fmt.Fprintf(&rows, `{"number":%d,"id":"20260102-030405-%08x","holder":"%s","result":"committed","components":[]}`+"\n",
				i+1, i, strings.Repeat("x", 280))
		}
		n.place(t, layout.History, []byte(rows.String()))
		part := n.stageKubelet(t, "v1.30.0", "")
		part.PreviousVersion = strings.Repeat("ü", 40_000)
		n.push(t, part)

		past := n.history(t)
		last := past[len(past)-1]
		switch version := last.Components[0].PreviousVersion; {
		case len(past) != 200 || last.Number != 1201 || past[0].Number != 1002:
			t.Errorf("%d rows, from %d to %d; want the 200 up to 1201", len(past), past[0].Number, last.Number)
		case len(version) != 300 || strings.Trim(version, "ü") != "":
			t.Errorf("the version has %d bytes: %q", len(version), version)
		}
		if size := len(n.read(t, layout.History)); size > 256<<10 {
			t.Errorf("the file has %d bytes", size)
		}
	})
}

// A file that a crash, a disk error or another program has damaged costs the damaged rows alone.
func TestADamagedHistoryKeepsItsOtherRows(t *testing.T) {
	const row = `{"number":%d,"id":"20260102-030405-%08d","holder":"tester","result":"committed","components":[]}` + "\n"
	for name, damage := range map[string]string{
		"half a row":         `{"number":2,"id":"2026`,
		"no object":          "[]\nnull\n\x00\xff\n",
		"the same row again": fmt.Sprintf(row, 1, 1),
		"an older number":    fmt.Sprintf(row, 1, 9),
		"a path as an ID":    `{"number":5,"id":"..\\..\\windows","components":[]}` + "\n",
		"a number at its end": `{"number":2147483647,"id":"20260102-030405-00000009","components":[]}` + "\n" +
			`{"number":-1,"id":"20260102-030405-00000008"}` + "\n",
		"a component without a path": `{"number":2,"id":"20260102-030405-00000007","components":[{}]}` + "\n",
		"a component without a name": damagedRow(`"destination":"C:\\k.exe","name":""`),
		"a path of two lines":        damagedRow(`"destination":"C:\\k\n.exe"`),
		"half a path":                damagedRow(`"destination":"k\\kubelet.exe"`),
		"half a hash":                damagedRow(`"destination":"C:\\k.exe","sha256":"c180ad8d"`),
		"half a previous hash":       damagedRow(`"destination":"C:\\k.exe","previousSha256":"c180ad8d"`),
		"a name of two lines":        damagedRow(`"destination":"C:\\k.exe","name":"a\nb"`),
		"a service of two lines":     damagedRow(`"destination":"C:\\k.exe","service":"a\nb"`),
		"a long name":                damagedRow(`"destination":"C:\\k.exe","name":"` + strings.Repeat("x", 2000) + `"`),
		"a long row":                 damagedRow(`"destination":"C:\\k.exe","version":"` + strings.Repeat("x", 70_000) + `"`),
		"a time before Windows":      `{"number":2,"id":"20260102-030405-00000007","begun":"1500-01-01T00:00:00Z","components":[]}` + "\n",
		"a failed part of two lines": `{"number":2,"id":"20260102-030405-00000007","failedComponent":"a\nb","components":[]}` + "\n",
		"a thousand components": `{"number":6,"id":"20260102-030405-00000007","components":[` +
			strings.Repeat("{},", 999) + "{}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				n.place(t, layout.History, []byte(fmt.Sprintf(row, 1, 1)+damage))
				n.push(t, n.stageKubelet(t, "v1.30.0", ""))
				if past := n.history(t); len(past) != 2 || past[0].Number != 1 || past[1].Number != 2 ||
					past[1].Holder != "tester" {
					t.Errorf("the history is %+v", past)
				}
			})
		})
	}
}

// damagedRow returns a row with one component.
func damagedRow(component string) string {
	return `{"number":2,"id":"20260102-030405-00000007","holder":"","result":"committed","components":[{"name":"x",` + component + "}]}\n"
}

// A path of Windows has up to three bytes a character, and a rollback creates the file that a row names.
func TestTheHistoryShortensNoPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		part := n.stageKubelet(t, "v1.30.0", "")
		part.Name, part.Service, part.Destination, part.PreviousSHA256 = "long", "", `C:\k\`+strings.Repeat("語", 200)+`.exe`, ""
		n.push(t, part)
		if past := n.history(t); len(past) != 1 || past[0].Components[0].Destination != part.Destination {
			t.Errorf("the history is %+v, want the path %s", past, part.Destination)
		}
	})
}

// A transaction that a row cannot hold is not recorded in part: its rollback would be one in part.
func TestATransactionThatIsTooLargeForARowIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, p := n.session()
		defer p.Exit()
		var parts []swap.Component
		for i := range 40 {
			part := n.stageKubelet(t, "v1.30.0", "")
			part.Name, part.Service, part.PreviousSHA256 = fmt.Sprint("part-", i), "", ""
			part.Destination = fmt.Sprintf(`C:\k\%d.exe`, i)
			copied := part.Staged + fmt.Sprint(i)
			n.place(t, copied, n.read(t, part.Staged))
			part.Staged = copied
			parts = append(parts, part)
		}
		id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester", Components: parts})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := swap.Follow(t.Context(), m, id, func(swap.Event) {}); err != nil {
			t.Fatal(err)
		}
		var unrecorded *swap.UnrecordedError
		if err := swap.Acknowledge(t.Context(), m.Platform, id); !errors.As(err, &unrecorded) ||
			!strings.Contains(err.Error(), "40 components") {
			t.Errorf("the error is %v", err)
		}
		if past := n.history(t); len(past) != 0 {
			t.Errorf("the history is %+v", past)
		}
	})
}

// If the history cannot be written, the journal goes all the same, since the node's work must not end there, and the
// caller learns why.
func TestAHistoryThatCannotBeWrittenIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, p := n.session()
		defer p.Exit()
		id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester", Components: []swap.Component{
			n.stageKubelet(t, "v1.30.0", "")}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := swap.Follow(t.Context(), m, id, func(swap.Event) {}); err != nil {
			t.Fatal(err)
		}
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Phase == simulated.Before && op.Kind == simulated.OpWrite && strings.HasPrefix(op.Target, layout.History) {
				return simulated.DiskFull()
			}
			return simulated.Continue()
		})
		var unrecorded *swap.UnrecordedError
		if err := swap.Acknowledge(t.Context(), m.Platform, id); !errors.As(err, &unrecorded) {
			t.Errorf("the error is %v", err)
		}
		if past := n.history(t); len(past) != 0 {
			t.Errorf("the history is %+v", past)
		}
	})
}

// Two sessions that acknowledge the same transaction at the same time write one row.
func TestTwoSessionsWriteOneRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.push(t, n.stageKubelet(t, "v1.30.0", ""))
		m, p := n.session()
		defer p.Exit()
		id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester", Components: []swap.Component{
			n.stageKubelet(t, "v1.31.0", "")}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := swap.Follow(t.Context(), m, id, func(swap.Event) {}); err != nil {
			t.Fatal(err)
		}
		ends := make(chan error)
		for range 2 {
			go func() {
				other, p := n.session()
				defer p.Exit()
				ends <- swap.Acknowledge(t.Context(), other.Platform, id)
			}()
		}
		for range 2 {
			if err := <-ends; err != nil && !errors.Is(err, swap.ErrNoTransaction) {
				t.Error(err)
			}
		}
		if past := n.history(t); len(past) != 2 || past[1].ID != id {
			t.Errorf("the history is %+v", past)
		}
	})
}
