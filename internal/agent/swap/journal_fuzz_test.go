package swap_test

import (
	"context"
	"errors"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// FuzzReadJournal reads arbitrary data, such as a power cut, a full disk or another program leaves, as a journal, as
// each contact with the node does: it must not panic or prevent an inspection, and an unfinished transaction is never
// acknowledged.
func FuzzReadJournal(f *testing.F) {
	const (
		id   = "20260102-030405-0123abcd"
		path = layout.Journals + `\` + id + ".jsonl"
	)
	prepared := `{"time":"2026-01-02T03:04:05Z","state":"prepared","plan":{"holder":"x",` +
		`"components":[{"name":"kubelet","destination":"C:\\k\\kubelet.exe",` +
		`"staged":"C:\\k\\kubelet.exe.swdt-0123456789ab","sha256":"00","service":"kubelet","health":{"timeout":1}}]},` +
		`"boot":"1"}` + "\n"
	for _, seed := range []string{
		"", "\n", "{", "null\n", "[]\n", prepared, prepared[:40],
		prepared + `{"state":"done","outcome":{"result":"committed","components":null}}` + "\n",
		prepared + `{"state":"stopping","before":{"running":["kubelet",""],"commandLines":{"kubelet":"x"},` +
			`"old":{"kubelet":{"Volume":1,"Index":2}}}}`,
		prepared + `{"state":"done","outcome":{"down":-1,"components":[{"service":{},"logLines":["\u0000"]}]}}` +
			"\n{}\n",
		`{"plan":null}` + "\n" + `{"time":"0000-00-00T00:00:00Z"}`, "\xff\xfe{\x00}",
	} {
		f.Add([]byte(seed))
	}
	m := simulated.New(simulated.Options{Preset: simulated.Minimal})
	f.Cleanup(m.Close)
	p := m.Process("swdt-agent.exe")
	if err := p.Files.MakeFolder(layout.Journals); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		m.WriteFile(path, content)
		transactions, err := swap.Transactions(p.Files)
		switch {
		case err != nil:
			t.Fatal(err)
		case len(transactions) != 1:
			t.Fatalf("transactions has %d elements, want 1: %v", len(transactions), transactions)
		case transactions[0].ID != id:
			t.Fatalf("transactions[0].ID is %v, want %v", transactions[0].ID, id)
		}
		err = swap.Acknowledge(context.Background(), p, id)
		if errors.As(err, new(*swap.UnrecordedError)) { // the history takes no damaged row, and the journal goes all the same
			err = nil
		}
		_, left := p.Files.Stat(path)
		finished := transactions[0].Outcome != nil || transactions[0].Begun.IsZero() && transactions[0].Holder == ""
		switch {
		case err != nil && !errors.Is(err, swap.ErrBusy):
			t.Fatalf("acknowledge: %v", err)
		case err == nil && (left == nil || !finished && transactions[0].State != swap.Prepared):
			t.Fatalf("acknowledged %+v, and the journal: %v", transactions[0], left)
		case err != nil && left != nil:
			t.Fatalf("refused, and the journal is gone: %v", left)
		}
		_, _ = swap.Inspect(context.Background(), p, hashcache.Load(p.Files),
			&agentv1.InspectComponent{Name: "kubelet", Destination: `C:\k\kubelet.exe`}, nil)
	})
}
