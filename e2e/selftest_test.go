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

var updateStandIn = flag.Bool("update-stand-in", false, "record the answers of the Wine node for swdt selftest anew")

// TestSelftestOnAWineNode tries all claims on a Wine node behind Debian's OpenSSH. The claims that this
// node cannot prove are named, all others pass, and the node is afterwards as before.
func TestSelftestOnAWineNode(t *testing.T) {
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
	expectClaims(t, report)
	if !strings.HasPrefix(report.System.OpenSSH, "OpenSSH_") || report.System.Kind != "wine" || report.CleanUp != "" {
		t.Errorf("the report describes %+v, and its clean-up is %q", report.System, report.CleanUp)
	}
	if *updateStandIn {
		recordStandIn(t, report)
		return
	}
	for _, d := range report.Differences { // some depend on how far a push has come when the node restarts
		if d.StandIn == "wine" {
			t.Logf("another answer than recorded: %+v; -update-stand-in writes them anew", d)
		}
	}
}

// expectClaims fails the test unless all claims passed, but those about things that the Wine node lacks.
func expectClaims(t *testing.T, report selftest.Report) {
	t.Helper()
	lacks := []string{"events", "counters", "runtime", "service-event"}
	var impossible []string
	for _, c := range report.Claims {
		switch c.Outcome {
		case selftest.Passed:
		case selftest.Impossible:
			impossible = append(impossible, c.ID)
		default:
			t.Errorf("%s: %s: %s", c.ID, c.Outcome, c.Reason)
		}
	}
	if diff := cmp.Diff(lacks, impossible); diff != "" {
		t.Errorf("claims that are not possible (-want +got):\n%s", diff)
	}
}

func recordStandIn(t *testing.T, r selftest.Report) {
	t.Helper()
	text, err := json.MarshalIndent(r.Record(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../internal/proof/selftest/standins/wine.json", append(text, '\n'), 0o644); err != nil {
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
var ownFiles = []string{"ProgramData/swdt/hashes.json", "ProgramData/swdt/lock", "ProgramData/swdt/journal"}

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
