//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/owners"
)

// TestPsOfRealPods: pod, container, task and process of the real containerd, with
// processes of Windows programs, and a shim that the runtime does not know.
func TestPsOfRealPods(t *testing.T) {
	t.Parallel()
	n := newPodNode(t, "1.7.12")
	p := n.runPod(t, "burner", true, "--cores", "0.5")

	table := n.ps(t, exitDone)

	t.Logf("\n%s", ok(t, "ps", "-c", n.config).stdout)
	if len(table.Pods) != 1 || len(table.Gaps) > 0 || len(table.Orphans) > 0 {
		t.Fatalf("%+v", table)
	}
	pod := table.Pods[0]
	// The lab has one shim for the sandbox and one for each container.
	if pod.ID != p.sandbox || pod.Path() != "default/burner" || len(pod.Shims) != 2 ||
		!strings.Contains(pod.Shims[0].CommandLine, p.sandbox) ||
		!strings.Contains(pod.Shims[1].CommandLine, p.container) {
		t.Errorf("pod %+v", pod)
	}
	if len(pod.Containers) != 1 || pod.Containers[0].ID != p.container || len(pod.Containers[0].Processes) != 1 {
		t.Fatalf("containers %+v", pod.Containers)
	}
	burn := pod.Containers[0].Processes[0]
	if burn.PID != pod.Containers[0].Task || burn.Name != "program.exe" || burn.Cores == nil || *burn.Cores <= 0 ||
		burn.Handles == 0 || burn.Threads == 0 || burn.MemoryBytes == 0 {
		t.Errorf("the container's process: %+v", burn)
	}
	i := slices.IndexFunc(table.Services, func(s owners.Service) bool { return s.Name == "containerd" })
	if i < 0 || len(table.Services[i].Processes) == 0 || table.Services[i].Processes[0].Name != "containerd.exe" {
		t.Errorf("services %+v", table.Services)
	}

	orphan := n.plantOrphan(t)
	table = n.awaitOrphan(t)
	if o := table.Orphans[0]; o.Sandbox != "deadbeef" || o.Name != orphan {
		t.Errorf("orphans %+v", table.Orphans)
	}
	t.Logf("\n%s", swdt(t, "ps", "-c", n.config, "--orphans", "--fail-on", "orphan"))
	n.removePod(t, p)
	if table = n.ps(t, exitFinding); len(table.Pods) > 0 {
		t.Errorf("after its removal the pod is %+v", table.Pods)
	}
}

// ps runs `swdt ps` as a check.
func (n podNode) ps(t *testing.T, want int) owners.Table {
	t.Helper()
	r := swdt(t, "ps", "-c", n.config, "-o", "json", "--fail-on", "orphan")
	if r.code != want {
		t.Fatalf("exit code %d, want %d: %s", r.code, want, r)
	}
	var list struct{ Nodes []owners.Table }
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || len(list.Nodes) != 1 {
		t.Fatalf("%v: %s", err, r)
	}
	return list.Nodes[0]
}

// plantOrphan runs, until the test ends, a shim that containerd has not started.
func (n podNode) plantOrphan(t *testing.T) (name string) {
	t.Helper()
	name = "containerd-shim-lost-v1.exe"
	ok(t, "cp", "-c", n.config, lab(t, "pods/containerd-shim-lab-v1.exe"), "node:C:\\lab\\"+name)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, environment(t, "SWDT_BIN"), "exec", "-c", n.config, "--",
		`C:\lab\`+name, "-namespace", "k8s.io", "-id", "deadbeef", "serve")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	return name
}

// awaitOrphan waits until the planted shim is too old to belong to a pod that is being
// made.
func (n podNode) awaitOrphan(t *testing.T) owners.Table {
	t.Helper()
	limit := time.Now().Add(commandLimit)
	for {
		r := swdt(t, "ps", "-c", n.config, "-o", "json", "--orphans", "--fail-on", "orphan")
		if r.code == exitFinding {
			return n.ps(t, exitFinding)
		}
		if time.Now().After(limit) {
			t.Fatalf("no orphan: %s", r)
		}
	}
}
