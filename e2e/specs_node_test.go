//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/verdict"
)

// specNode is a Wine node in a real cluster, and the way to run specs on it.
type specNode struct {
	podCluster
	args []string // of every run
}

// TestRealSpecsOnAWineNode runs specs of Kubernetes' own e2e.test whose pods the real kubelet and
// containerd of a node under Wine run, with Kubernetes' own agnhost in their images.
func TestRealSpecsOnAWineNode(t *testing.T) {
	n := newSpecNode(t)
	t.Run("they pass", func(t *testing.T) {
		report := n.run(t, 0, `Pods should (get a host IP|be submitted and removed|be updated|`+
			`delete a collection of pods|run through the lifecycle of Pods and PodStatus)`)
		if diff := cmp.Diff(verdict.Summary{Passed: 5}, report.Summary); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a spec that fails in one run of two is flaky, and its evidence names the cause", n.failsOnce)
}

// failsOnce takes the program of the node's pod network away until the first of two runs has failed.
func (n specNode) failsOnce(t *testing.T) {
	const plugin = `C:\lab\cni\lab-network.exe`
	n.exec(t, "cmd", "/c", "ren", plugin, "away.exe")
	folder := filepath.Join(t.TempDir(), "results")
	type ended struct {
		result
		err error
	}
	runs := make(chan ended, 1)
	go func() {
		r, err := execute(t.Context(), cacheHome(t), append(n.args, "--focus", "Pods should get a host IP", "--repeat", "2",
			"--out", folder, "-o", "json")...)
		runs <- ended{r, err}
	}()
	// Kubernetes' tests wait five minutes for a pod.
	within(t, 8*time.Minute, "evidence of the first run", func() error {
		_, err := os.Stat(filepath.Join(folder, "run-1", "evidence"))
		return err
	})
	n.exec(t, "cmd", "/c", "ren", `C:\lab\cni\away.exe`, "lab-network.exe")
	r := <-runs
	if r.err != nil || r.code != 5 {
		t.Fatalf("%v, %v", r.err, r.result)
	}
	report := decoded[verdict.Report](t, r.result)
	if len(report.Specs) != 1 || report.Specs[0].Verdict != verdict.Flaky || len(report.Specs[0].Evidence) != 1 {
		t.Fatalf("%+v", report.Specs)
	}
	spec := report.Specs[0]
	if diff := cmp.Diff(verdict.Counts{Passed: 1, Failed: 1}, spec.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	t.Logf("%q", spec.Evidence[0].Causes)
	if !strings.Contains(strings.Join(spec.Evidence[0].Causes, "\n"), "lab-network") {
		t.Errorf("the causes do not name the program: %q", spec.Evidence[0].Causes)
	}
}

func newSpecNode(t *testing.T) specNode {
	t.Helper()
	if os.Getenv("SWDT_LAB_CLUSTER") != "required" {
		t.Skip("needs the lab's e2e.test and control plane: run make e2e")
	}
	agnhost := lab(t, "pods/agnhost-1.36.3.exe")
	c := newPodCluster(t, "agnhost:2.63.0="+agnhost, "agnhost:2.55="+agnhost, "pause:3.10.2="+agnhost+",pause")
	c.needsAddress(t)
	t.Setenv("KUBECONFIG", c.cluster.Kubeconfig)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	c.kubectl(t, "taint", "nodes", "wine-1", "os=windows:NoSchedule-") // as the error of swdt proposes
	images := textFile(t, fmt.Sprintf("gcRegistry: %s\npromoterE2eRegistry: %[1]s\n", c.registry))
	return specNode{c, []string{"e2e", "--binary", lab(t, realSpecs), "--repo-list", images, "-c", c.config}}
}

// run runs the specs that match, and returns the results.
func (n specNode) run(t *testing.T, want int, focus string, more ...string) verdict.Report {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "results")
	r := swdtWithin(t, 9*time.Minute, append(append(n.args, "--focus", focus, "--out", folder, "-o", "json"), more...)...)
	if r.code != want {
		t.Fatalf("exit code %d, want %d", r.code, want)
	}
	report := decoded[verdict.Report](t, r)
	for _, s := range report.Specs {
		t.Logf("%s %.1f s %s", s.Words(), s.Seconds.Max, s.Name)
	}
	return report
}
