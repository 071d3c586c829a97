//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/join/smoke"
)

// TestCheckOfAWineNode runs the smoke test on a node with the real kubelet and containerd. The real
// scheduler gives the pod to the node, and the image is pulled. The lab's image has another program than
// agnhost, so its container ends at once, with its own words in the result.
func TestCheckOfAWineNode(t *testing.T) {
	c := newPodCluster(t)
	args := []string{"cluster", "check", "--kubeconfig", c.cluster.Kubeconfig, "--image", c.registry + "/burn:1",
		"--wait-timeout", "3m"}
	r := swdt(t, append(args, "-o", "json")...)
	if r.code != exitFinding {
		t.Fatalf("exit code %d, want %d: %s", r.code, exitFinding, r.stderr)
	}
	report := decoded[smoke.Report](t, r)
	if len(report.Nodes) != 1 {
		t.Fatalf("%d nodes, want 1: %+v", len(report.Nodes), report)
	}
	var legs []string
	for _, l := range report.Nodes[0].Legs {
		t.Logf("%s %s %.1f s %s", l.Name, l.Result, l.Seconds, l.Message)
		if l.Name != smoke.Started && l.Name != smoke.LogsAndExec { // the kubelet may report the end in either of them
			legs = append(legs, l.Name+" "+l.Result)
		}
	}
	want := []string{"scheduled passed", "resolves notRun", "reaches-linux notRun", "reaches-service notRun",
		"reached-from-linux notRun", "reaches-api notRun"}
	if diff := cmp.Diff(want, legs); diff != "" {
		t.Errorf("legs (-want +got):\n%s", diff)
	}
	if said := report.Nodes[0].Error; !strings.Contains(said, "exit code 2") || !strings.Contains(said, "usage: burn") {
		t.Errorf("the node's error is %q", said)
	}
	if left := c.kubectl(t, "get", "namespaces", "-l", "swdt.dev/smoke-test", "-o",
		"jsonpath={.items[?(@.status.phase=='Active')].metadata.name}"); left != "" {
		t.Errorf("namespaces are left: %s", left)
	}
}
