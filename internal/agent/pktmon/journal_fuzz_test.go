package pktmon

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// errRegistered is returned by a service manager that registers no guardian.
var errRegistered = errors.New("a guardian would be registered")

type unregistering struct{ platform.Services }

func (unregistering) Create(context.Context, platform.ServiceConfig) error { return errRegistered }

// FuzzReadJournal reads arbitrary data, such as a power cut or another program leaves, as a capture's journal, as
// each contact with the node does. An accepted journal refers only to the capture's own files and to one word of a
// service's command line, and is the same after writing and reading it. A rejected one starts no guardian and does
// not prevent a capture.
func FuzzReadJournal(f *testing.F) {
	const begun = `{"plan":{"id":"20260102-1","holder":"x","start":["start"]},"state":"prepared"}`
	for _, seed := range []string{
		"", "null", "{", "[]", "\x00\x00", begun, begun[:40], begun + "{}",
		`{"plan":{"id":"..\\x","start":["a"]},"state":"capturing"}`,
		`{"plan":{"id":"x \" y","start":["a"]},"state":"starting"}`,
		`{"plan":{"id":"journal","start":["a"]},"state":"done","outcome":{"result":"captured"}}`,
		`{"plan":{"id":"a","start":["start","C:\\ProgramData\\swdt\\capture\\a.etl"],"round":2000000000},` +
			`"state":"capturing","closed":3,"until":"2026-01-02T03:04:05Z","missed":5,"began":"2026-01-02T03:04:05Z"}`,
		`{"plan":{"id":"a","start":["a"],"filters":[["-p","53"],null]},"state":"done","outcome":{"result":"refused",` +
			`"filters":["1 x"],"kept":"\u0000"}}`,
		`{"plan":{"id":"a","start":["a"]},"state":"done"}`,
	} {
		f.Add([]byte(seed))
	}
	m := simulated.New(simulated.Options{Preset: simulated.Minimal})
	f.Cleanup(m.Close)
	h := *m.Process("swdt-agent.exe")
	h.Services = unregistering{h.Services}
	f.Fuzz(func(t *testing.T, content []byte) {
		m.WriteFile(layout.CaptureJournal, content)
		j, err := readJournal(h.Files)
		healed := Heal(t.Context(), Machine{Platform: &h, Executable: `C:\a.exe`})
		var damaged *damagedError
		if errors.As(err, &damaged) {
			switch whole, err := readJournalIfWhole(h.Files); {
			case whole != nil:
				t.Fatalf("whole is %v, want nil", whole)
			case err != nil:
				t.Fatal(err)
			case !errors.As(healed, &damaged):
				t.Fatalf("the error is %v, a %T, want a %T", healed, healed, damaged)
			case errors.Is(healed, errRegistered):
				t.Fatalf("the error is %v, want anything but %v", healed, errRegistered)
			}
			return
		}
		if err != nil || j == nil {
			t.Fatalf("neither a journal nor damaged: %+v, %v", j, err)
		}
		want := errRegistered
		if j.State == captureplan.Done {
			want = nil
		}
		if !errors.Is(healed, want) {
			t.Fatalf("a capture that is %s: Heal returned %v, want %v", j.State, healed, want)
		}
		checkPaths(t, j)
		checkWrittenAgain(t, h.Files, j)
	})
}

// checkPaths checks that a journal refers only to files of its own capture.
func checkPaths(t *testing.T, j *journal) {
	t.Helper()
	id := j.Plan.ID
	for _, path := range []string{keepFile(id), captureplan.ResultFile(id), captureplan.LogFile(id),
		captureplan.TextFile(id), captureplan.RoundFile(id, j.Closed)} {
		name, below := strings.CutPrefix(path, layout.Captures+`\`)
		switch {
		case !below:
			t.Fatal("below is false, want true")
		case strings.ContainsAny(name, `\/:*?"<>| `):
			t.Fatalf("name contains one of %q:\n%s", `\/:*?"<>| `, name)
		case strings.Contains(name, ".."):
			t.Fatalf("name contains %q:\n%s", "..", name)
		case captureOf(platform.FileInfo{Path: path}) != id:
			t.Fatalf("the capture %q leads to %s", id, path)
		}
	}
	if strings.ContainsAny(id, " \t\"") || id == "" {
		t.Fatalf("the capture %q is more than a word of a command line", id)
	}
}

func checkWrittenAgain(t *testing.T, files platform.Files, j *journal) {
	t.Helper()
	if err := j.write(files); err != nil {
		t.Fatal(err)
	}
	again, err := readJournal(files)
	if err != nil {
		t.Fatalf("written again, it is refused: %v", err)
	}
	first, _ := json.Marshal(j)
	second, _ := json.Marshal(again)
	if string(first) != string(second) {
		t.Fatalf("%s\nis, written and read again,\n%s", first, second)
	}
}
