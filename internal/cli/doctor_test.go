package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Saved facts have no secrets, wherever the node has some, but keep what the node itself
// did. A run that has no facts to save leaves the earlier ones.
func TestFactsAreKeptWithoutSecrets(t *testing.T) {
	w, machines, unplugs := diagnosed(t, "win")
	m := machines["win"]
	err := m.Process("plant").Services.Create(t.Context(), platform.ServiceConfig{
		Name: "flanneld", CommandLine: `C:\k\flanneld.exe --etcd-username me --etcd-password planted-1`,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.LogEvent(simulated.LoggedEvent{
		Channel: "System", Provider: "Service Control Manager", ID: 7031, Level: 2, Data: []string{"sync"},
		Message: "sync --token=planted-2 ended\x1b[2J.",
	})
	path := filepath.Join(w.folder, "facts.json")
	code, live := w.swdt(t.Context(), &lines{}, "doctor", "--fail-on", "never", "--save-facts", path)
	if code != 0 || !strings.Contains(live, "sync ended unexpectedly") || strings.Contains(live, "\x1b") {
		t.Fatalf("exit code %d\n%q", code, live)
	}
	facts, err := os.ReadFile(path)
	if err != nil || bytes.Contains(facts, []byte("planted")) ||
		!bytes.Contains(facts, []byte("--etcd-password REDACTED")) {
		t.Fatalf("%v\n%.3000s", err, facts)
	}
	var file struct{ Nodes []doctor.Facts }
	if err := json.Unmarshal(facts, &file); err != nil || len(file.Nodes) != 1 {
		t.Fatal(err)
	}
	code, again := w.swdt(t.Context(), &lines{}, "doctor", "--fail-on", "never", "--facts", path)
	again = strings.ReplaceAll(again, " -n win`", "`") // facts come without node files, so commands name the node
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

// If several nodes have the same finding, it is printed once, with the nodes in natural
// order, and its command is for exactly these nodes; JSON has each node's own.
func TestDoctorGroupsFindingsOfNodes(t *testing.T) {
	w, _, _ := diagnosed(t, "n10", "n2", "n1")
	w.write("kubelet.conf", []byte("apiVersion: v1\nkind: Config\n"))
	if code, out := w.swdt(t.Context(), &lines{}, "cp", filepath.Join(w.folder, "kubelet.conf"),
		`node:C:\etc\kubernetes\kubelet.conf`, "-n", "n2"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	code, out := w.swdt(t.Context(), &lines{}, "doctor", "--rule", "joined", "--fail-on", "never")
	want := regexp.MustCompile(`(?s)^n1, n10 \(ltsc2022\): 1 note in 1 rule
n2 \(ltsc2022\): nothing wrong in 1 rule
· joined  [^\n]+
 +on n1, n10
.* +→ ` + "`swdt join --kubeconfig FILE " + `-c \S+ -n n1,n10` + "`")
	if code != 0 || !want.MatchString(out) || strings.Count(out, "· joined") != 1 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	code, out = w.swdt(t.Context(), &lines{}, "doctor", "--rule", "joined", "--fail-on", "never", "-o", "json")
	var report struct {
		Nodes []struct {
			Name     string
			Findings []finding.Fault
		}
	}
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || len(report.Nodes) != 3 {
		t.Fatalf("exit code %d, %v\n%s", code, err, out)
	}
	for i, name := range []string{"n1", "n2", "n10"} {
		n := report.Nodes[i]
		if n.Name != name || (name != "n2") != (len(n.Findings) == 1) {
			t.Errorf("node %d is %+v", i, n)
		}
		for _, f := range n.Findings {
			if !strings.Contains(f.Remedy, " -n "+name+"`") {
				t.Errorf("%s: %s", name, f.Remedy)
			}
		}
	}
}

func TestDiagListsNodesInNaturalOrder(t *testing.T) {
	w, _, unplugs := diagnosed(t, "n10", "n2", "n1")
	unplugs["n2"]()
	_, out := w.swdt(t.Context(), &lines{}, "diag", "--out", w.bundle(), "-o", "jsonpath={.nodes[*].name}")
	if out != "n1 n2 n10" {
		t.Errorf("nodes %q", out)
	}
	var manifest diag.Manifest
	if err := json.Unmarshal(unpacked(t, w.bundle())["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if n := manifest.Nodes; len(n) != 3 || n[0].Name != "n1" || n[1].Name != "n2" || n[2].Name != "n10" {
		t.Errorf("the manifest has %+v", n)
	}
}
