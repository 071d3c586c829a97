//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
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
