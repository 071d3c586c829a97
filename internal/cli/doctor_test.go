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
	switch {
	case code != 0:
		t.Fatalf("code = %v, want 0", code)
	case !strings.Contains(live, "sync ended unexpectedly"):
		t.Fatalf("live lacks %q:\n%s", "sync ended unexpectedly", live)
	case strings.Contains(live, "\x1b"):
		t.Fatalf("live contains %q:\n%s; exit code %d\n%q", "\x1b", live, code, live)
	}
	facts, err := os.ReadFile(path)
	switch {
	case err != nil:
		t.Fatalf("unexpected error: %v", err)
	case bytes.Contains(facts, []byte("planted")):
		t.Fatalf("bytes.Contains(facts, []byte(\"planted\")) is wrong; %v\n%.3000s", err, facts)
	case !bytes.Contains(facts, []byte("--etcd-password REDACTED")):
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
	switch {
	case code != 0:
		t.Errorf("code = %v, want 0", code)
	case !want.MatchString(out):
		t.Errorf("want.MatchString(out) is wrong; exit code %d\n%s", code, out)
	case strings.Count(out, "· joined") != 1:
		t.Errorf("strings.Count(out, \"· joined\") = %v, want 1; exit code %d\n%s", strings.Count(out, "· joined"),
			code, out)
	}
	code, out = w.swdt(t.Context(), &lines{}, "doctor", "--rule", "joined", "--fail-on", "never", "-o", "json")
	var report struct {
		Nodes []struct {
			Name     string
			Findings []finding.Fault
		}
	}
	switch err := json.Unmarshal([]byte(out), &report); {
	case code != 0:
		t.Fatalf("code = %v, want 0", code)
	case err != nil:
		t.Fatalf("unexpected error: %v", err)
	case len(report.Nodes) != 3:
		t.Fatalf("len(report.Nodes) = %v, want 3; exit code %d, %v\n%s", len(report.Nodes), code, err, out)
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
	switch n := manifest.Nodes; {
	case len(n) != 3:
		t.Errorf("len(n) = %v, want 3: %+v", len(n), n)
	case n[0].Name != "n1":
		t.Errorf("n[0].Name = %q, want %q", n[0].Name, "n1")
	case n[1].Name != "n2":
		t.Errorf("n[1].Name = %q, want %q", n[1].Name, "n2")
	case n[2].Name != "n10":
		t.Errorf("n[2].Name = %q, want %q; the manifest has %+v", n[2].Name, "n10", n)
	}
}
