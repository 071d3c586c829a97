package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/doctor"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/host/simulated"
)

// The facts that are kept have no secrets, wherever the node has some, and say what
// the node itself did; a run that has none to keep leaves the earlier ones.
func TestFactsAreKeptWithoutSecrets(t *testing.T) {
	w, machines, unplugs := diagnosed(t, "win")
	m := machines["win"]
	err := m.Process("plant").Services.Create(t.Context(), host.ServiceConfig{
		Name: "flanneld", CommandLine: `C:\k\flanneld.exe --etcd-username me --etcd-password planted-1`,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.LogEvent(simulated.LoggedEvent{
		Channel: "System", Provider: "Service Control Manager", ID: 7031, Level: 2, Data: []string{"sync"}, Message: "sync --token=planted-2 ended\x1b[2J.",
	})
	path := filepath.Join(w.folder, "facts.json")
	code, live := w.swdt(t.Context(), &lines{}, "doctor", "--fail-on", "never", "--save-facts", path)
	if code != 0 || !strings.Contains(live, "sync ended unexpectedly") || strings.Contains(live, "\x1b") {
		t.Fatalf("exit code %d\n%q", code, live)
	}
	facts, err := os.ReadFile(path)
	if err != nil || bytes.Contains(facts, []byte("planted")) || !bytes.Contains(facts, []byte("--etcd-password REDACTED")) {
		t.Fatalf("%v\n%.3000s", err, facts)
	}
	var file struct{ Nodes []doctor.Facts }
	if err := json.Unmarshal(facts, &file); err != nil || len(file.Nodes) != 1 {
		t.Fatal(err)
	}
	code, again := w.swdt(t.Context(), &lines{}, "doctor", "--fail-on", "never", "--facts", path)
	if want := strings.ReplaceAll(live, "planted-2", "REDACTED"); code != 0 || again != want {
		t.Errorf("exit code %d\n%s\nwant\n%s", code, again, want)
	}

	unplugs["win"]()
	if code, out := w.swdt(t.Context(), &lines{}, "doctor", "--save-facts", path); code != 3 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, facts) {
		t.Errorf("%v, the facts are now\n%.300s", err, kept)
	}
}
