//go:build e2e

package e2e

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/selftest"
)

var updateStandIn = flag.Bool("update-stand-in", false, "record the answers of swdt selftest's stand-ins anew")

// TestSelftestOnAWineNode tries all claims on a Wine node behind Debian's OpenSSH. The claims that this
// node cannot prove are named, all others pass, and the node is afterwards as before.
func TestSelftestOnAWineNode(t *testing.T) {
	t.Parallel()
	info := wineSandbox(t)
	file := nodeFile(t, opensshFor(t, info).credentials(), "")
	ok(t, "exec", "-c", file, "--", "hostname") // brings the agent, which stays
	before := stateOfNode(t, info.Prefix, file)
	out := filepath.Join(t.TempDir(), "report.json")
	const limit = 8 * time.Minute
	r := swdtWithin(t, limit, "selftest", "-c", file, "--change-settings", "--allow-reboot", "--out", out)
	if r.code != 0 {
		t.Errorf("exit code %d", r.code)
	}
	report, err := selftest.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	after := stateOfNode(t, info.Prefix, file)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the run changed the node (-before +after):\n%s", diff)
	}
	expectClaims(t, report, map[string]selftest.Outcome{"events": selftest.Impossible, "counters": selftest.Impossible,
		"runtime": selftest.Impossible, "service-event": selftest.Impossible})
	if !strings.HasPrefix(report.System.OpenSSH, "OpenSSH_") || report.System.Kind != "wine" || report.CleanUp != "" {
		t.Errorf("the report describes %+v, and its clean-up is %q", report.System, report.CleanUp)
	}
	if *updateStandIn {
		recordStandIn(t, report, "wine")
		return
	}
	for _, d := range report.Differences { // some depend on how far a push has come when the node restarts
		if d.StandIn == "wine" {
			t.Logf("another answer than recorded: %+v; -update-stand-in writes them anew", d)
		}
	}
}

// expectClaims fails the test unless all claims passed, but those that have another outcome on this node.
func expectClaims(t *testing.T, report selftest.Report, others map[string]selftest.Outcome) {
	t.Helper()
	got := map[string]selftest.Outcome{}
	for _, c := range report.Claims {
		if c.Outcome == selftest.Failed {
			t.Errorf("%s: %s", c.ID, c.Reason)
		}
		if c.Outcome != selftest.Passed {
			got[c.ID] = c.Outcome
		}
	}
	if diff := cmp.Diff(others, got); diff != "" {
		t.Errorf("claims that have not passed (-want +got):\n%s", diff)
	}
	if len(report.Claims) != len(selftest.Claims()) {
		t.Errorf("%d of %d claims are in the report", len(report.Claims), len(selftest.Claims()))
	}
}

// TestSelftestOnASandbox tries all claims on a simulated node, and compares its answers with the recorded ones.
func TestSelftestOnASandbox(t *testing.T) {
	t.Parallel()
	state, out := t.TempDir(), filepath.Join(t.TempDir(), "report.json")
	info := decoded[sandboxInfo](t, ok(t, "sandbox", "up", "--name", "tried", "--state-dir", state, "-o", "json"))
	t.Cleanup(func() { ok(t, "sandbox", "down", "--name", "tried", "--state-dir", state) })
	r := swdtWithin(t, 5*time.Minute, "selftest", "-c", info.Config, "--change-settings", "--allow-reboot", "--out", out)
	if r.code != 0 {
		t.Errorf("exit code %d", r.code)
	}
	report, err := selftest.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	expectClaims(t, report, map[string]selftest.Outcome{})
	if *updateStandIn {
		recordStandIn(t, report, "simulated")
		return
	}
	for _, d := range report.Differences {
		if d.StandIn == "simulated" {
			t.Errorf("another answer than recorded: %+v; -update-stand-in writes them anew", d)
		}
	}
}

// recordStandIn writes the answers of a stand-in.
func recordStandIn(t *testing.T, r selftest.Report, name string) {
	t.Helper()
	text, err := json.MarshalIndent(r.Record(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../internal/proof/selftest/standins/"+name+".json", append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// stateOfNode returns what a run must leave unchanged: the hash of each file of drive C:, and the lines of each key of
// the registry, which has the services, too.
func stateOfNode(t *testing.T, prefix, file string) map[string]string {
	t.Helper()
	state := registryOf(t, prefix, file)
	maps.Copy(state, filesOf(t, prefix))
	return state
}

// ownFiles are the files that any command of swdt writes, and the folder of its journals, which any push leaves.
var ownFiles = []string{"ProgramData/swdt/hashes.json", "ProgramData/swdt/lock", "ProgramData/swdt/journal",
	"ProgramData/swdt/history.jsonl", "ProgramData/swdt/history.lock"}

// filesOf returns the files of drive C: but ownFiles.
func filesOf(t *testing.T, prefix string) map[string]string {
	t.Helper()
	state := upState{}
	state.addTree(t, "", filepath.Join(prefix, "drive_c"))
	for _, name := range ownFiles {
		delete(state, name)
	}
	return state
}

// provesItself tries all claims through the cluster, also the restart of the node, which ends the pod that carries the
// stream. The node runs pods, so its files change; what the run makes is gone, and the registry is as before.
func (c throughCluster) provesItself(t *testing.T) {
	before := registryOf(t, c.cluster.Prefix, c.config)
	out := filepath.Join(t.TempDir(), "report.json")
	const limit = 8 * time.Minute
	r := swdtWithin(t, limit, "selftest", "-c", c.file(t, ""), "--change-settings", "--allow-reboot", "--out", out)
	if r.code != 0 {
		t.Errorf("exit code %d", r.code)
	}
	report, err := selftest.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, registryOf(t, c.cluster.Prefix, c.config)); diff != "" {
		t.Errorf("the run changed the registry (-before +after):\n%s", diff)
	}
	if _, err := os.Lstat(filepath.Join(c.cluster.Prefix, "drive_c/ProgramData/swdt/selftest")); !os.IsNotExist(err) {
		t.Errorf("the run left its folder: %v", err)
	}
	expectClaims(t, report, map[string]selftest.Outcome{"events": selftest.Impossible, "counters": selftest.Impossible,
		"service-event": selftest.Impossible})
	if report.System.Way != "kubernetes" || report.CleanUp != "" {
		t.Errorf("the report describes %+v, and its clean-up is %q", report.System, report.CleanUp)
	}
	for _, d := range report.Differences {
		if d.StandIn == "wine" {
			t.Logf("another answer than over SSH: %+v", d)
		}
	}
}
