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

// TestPsOfRealPods checks that `swdt ps` lists the pod, container, task and processes of the real
// containerd, and a shim that the runtime does not know.
func TestPsOfRealPods(t *testing.T) {
	t.Parallel()
	n := newPodNode(t, "1.7.12")
	p := n.runPod(t, "burner", true, "--cores", "0.5")

	table := n.ps(t, exitDone)

	t.Logf("\n%s", ok(t, "ps", "-c", n.config).stdout)
	switch {
	case len(table.Pods) != 1:
		t.Fatalf("table.Pods has %d elements, want 1: %v", len(table.Pods), table.Pods)
	case len(table.Gaps) > 0:
		t.Fatalf("table.Gaps is %v, want it empty", table.Gaps)
	case len(table.Orphans) > 0:
		t.Fatalf("table.Orphans is %v, want it empty", table.Orphans)
	}
	pod := table.Pods[0]
	// The lab has one shim for the sandbox and one for each container.
	switch {
	case pod.ID != p.sandbox:
		t.Errorf("pod.ID is %v, want %v", pod.ID, p.sandbox)
	case pod.Path() != "default/burner":
		t.Errorf("pod.Path() is %q, want %q", pod.Path(), "default/burner")
	case len(pod.Shims) != 2:
		t.Errorf("pod.Shims has %d elements, want 2: %v", len(pod.Shims), pod.Shims)
	case !strings.Contains(pod.Shims[0].CommandLine, p.sandbox):
		t.Errorf("pod.Shims[0].CommandLine lacks %q:\n%s", p.sandbox, pod.Shims[0].CommandLine)
	case !strings.Contains(pod.Shims[1].CommandLine, p.container):
		t.Errorf("pod.Shims[1].CommandLine lacks %q:\n%s", p.container, pod.Shims[1].CommandLine)
	}
	switch {
	case len(pod.Containers) != 1:
		t.Fatalf("pod.Containers has %d elements, want 1: %v", len(pod.Containers), pod.Containers)
	case pod.Containers[0].ID != p.container:
		t.Fatalf("pod.Containers[0].ID is %v, want %v", pod.Containers[0].ID, p.container)
	case len(pod.Containers[0].Processes) != 1:
		t.Fatalf("pod.Containers[0].Processes has %d elements, want 1: %v", len(pod.Containers[0].Processes),
			pod.Containers[0].Processes)
	}
	burn := pod.Containers[0].Processes[0]
	switch {
	case burn.PID != pod.Containers[0].Task:
		t.Errorf("the container's process: burn.PID is %v, want %v", burn.PID, pod.Containers[0].Task)
	case burn.Name != "program.exe":
		t.Errorf("the container's process: burn.Name is %q, want %q", burn.Name, "program.exe")
	case burn.Cores == nil:
		t.Error("the container's process: burn.Cores is nil")
	case *burn.Cores <= 0:
		t.Errorf("the container's process: *burn.Cores is %v, want more than 0", *burn.Cores)
	case burn.Handles == 0:
		t.Error("the container's process: burn.Handles is 0")
	case burn.Threads == 0:
		t.Error("the container's process: burn.Threads is 0")
	case burn.MemoryBytes == 0:
		t.Error("the container's process: burn.MemoryBytes is 0")
	}
	i := slices.IndexFunc(table.Services, func(s owners.Service) bool { return s.Name == "containerd" })
	switch {
	case i < 0:
		t.Errorf("i is %v, want at least 0", i)
	case len(table.Services[i].Processes) == 0:
		t.Error("table.Services[i].Processes is empty")
	case table.Services[i].Processes[0].Name != "containerd.exe":
		t.Errorf("table.Services[i].Processes[0].Name is %q, want %q", table.Services[i].Processes[0].Name,
			"containerd.exe")
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

// ps runs `swdt ps --fail-on orphan`, checks the exit code, and returns the table.
func (n podNode) ps(t *testing.T, want int) owners.Table {
	t.Helper()
	r := swdt(t, "ps", "-c", n.config, "-o", "json", "--fail-on", "orphan")
	if r.code != want {
		t.Fatalf("exit code %d, want %d: %s", r.code, want, r)
	}
	var list struct{ Nodes []owners.Table }
	switch err := json.Unmarshal([]byte(r.stdout), &list); {
	case err != nil:
		t.Fatal(err)
	case len(list.Nodes) != 1:
		t.Fatalf("list.Nodes has %d elements, want 1: %v", len(list.Nodes), list.Nodes)
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
		_ = cmd.Wait() // the error only reports that swdt was killed
	})
	return name
}

// awaitOrphan waits until swdt reports the planted shim as an orphan: until the shim is too old to
// belong to a pod that containerd is still making.
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
