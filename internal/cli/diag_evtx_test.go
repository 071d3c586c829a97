package cli_test

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// A bundle contains event channels as files only on request, since nothing is redacted in
// them. They have the last events, up to the size that suits a bundle, and no part of
// them stays on the node.
func TestEventFiles(t *testing.T) {
	w, machines, _ := diagnosed(t, "win")
	m := machines["win"]
	for i := range 1500 {
		m.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "P", ID: i, Level: 3,
			Message: "password=planted-in-an-event"})
	}
	if code, out := w.swdt(t.Context(), &lines{}, "diag", "--out", w.bundle()); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	for name, content := range unpacked(t, w.bundle()) {
		if path.Ext(name) == ".evtx" || bytes.Contains(content, []byte("planted-in-an-event")) {
			t.Errorf("read %s, which no option selects", name)
		}
	}

	large := strings.Repeat("x", 64<<10)
	for i := range 300 {
		m.LogEvent(simulated.LoggedEvent{Channel: "Application", Provider: "P", ID: i, Level: 3, Message: large})
	}
	story := &lines{}
	code, out := w.swdt(t.Context(), story, "diag", "--evtx", "--out", w.bundle())
	if code != 0 || !strings.Contains(story.String(), "nothing is redacted in the .evtx files") {
		t.Fatalf("exit code %d\n%s\n%s", code, out, story)
	}
	files := unpacked(t, w.bundle())
	system, application := files["nodes/win/events/System.evtx"], files["nodes/win/events/Application.evtx"]
	if !bytes.HasPrefix(system, []byte("ElfFile\x00")) || !bytes.Contains(system, []byte("planted-in-an-event")) {
		t.Errorf("the file is not as the node has it: %.200q", system)
	}
	switch n := bytes.Count(system, []byte("<Event ")); {
	case n != 1000:
		t.Errorf("n = %v, want 1000", n)
	case !bytes.Contains(system, []byte("<EventRecordID>1500<")):
		t.Errorf("%d events are in it, not the last 1000", n)
	case bytes.Contains(system, []byte("<EventRecordID>500<")):
		t.Errorf("%d events are in it, not the last 1000", n)
	}
	if !bytes.Contains(application, []byte("<EventRecordID>300<")) || len(application) > 16<<20 {
		t.Errorf("%d bytes of a channel with large events", len(application))
	}
	for name, content := range files {
		if path.Ext(name) != ".evtx" && bytes.Contains(content, []byte("planted-in-an-event")) {
			t.Errorf("the secret is in %s too", name)
		}
	}
	bundle, err := diag.Open(w.bundle())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range bundle.Manifest.Nodes[0].Collectors {
		for _, f := range c.Files {
			if f.Raw != (path.Ext(f.Path) == ".evtx") {
				t.Errorf("the manifest says of %s: raw %t", f.Path, f.Raw)
			}
		}
	}
	if left, err := m.Process("test").Files.List(layout.Scratch); err != nil || len(left) > 0 {
		t.Errorf("left on the node: %v, %v", left, err)
	}
}

// The next run removes files of a run that lost its connection, once they are old; new
// files may belong to another run.
func TestEventFilesOfALostRunAreRemoved(t *testing.T) {
	w, machines, _ := diagnosed(t, "win")
	files := machines["win"].Process("test").Files
	for _, name := range []string{"old", "new"} {
		machines["win"].WriteFile(fmt.Sprintf(`%s\%s\System.evtx`, layout.Scratch, name), []byte("x"))
	}
	if err := files.SetModified(layout.Scratch+`\old`, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if code, out := w.swdt(t.Context(), &lines{}, "diag", "--evtx", "--out", w.bundle()); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	left, err := files.List(layout.Scratch)
	switch {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case len(left) != 1:
		t.Errorf("len(left) = %v, want 1: %+v", len(left), left)
	case !strings.HasSuffix(left[0].Path, "new"):
		t.Errorf("left[0].Path = %q, want the suffix %q; left on the node: %v, %v", left[0].Path, "new", left, err)
	}
}
