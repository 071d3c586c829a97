package owners_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
)

const shimImage = `C:\Program Files\containerd\bin\containerd-shim-runhcs-v1.exe`

func look(t *testing.T, n *nodetest.Node) owners.Table {
	t.Helper()
	table, err := owners.NewObserver(n.Node, owners.Options{Window: 50 * time.Millisecond}).Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func names(processes []owners.Process) (all []string) {
	for _, p := range processes {
		all = append(all, p.Name)
	}
	return all
}

// The table of a simulated node: a pod with its shim, pod sandbox and container,
// services, and an orphan.
func TestEveryProcessHasOneOwner(t *testing.T) {
	n := nodetest.Start(t, "win1", simulated.Options{})
	long := time.Now().Add(-time.Hour)
	orphan := n.Machine.AddProcess(simulated.ProcessSpec{
		Image: shimImage, Started: long,
		CommandLine: `"` + shimImage + `" -namespace k8s.io -address \\.\pipe\containerd-containerd -id deadbeef serve`,
	})
	below := n.Machine.AddProcess(simulated.ProcessSpec{Image: `C:\job.exe`, ParentPID: orphan, Started: long})
	left := n.Machine.AddProcess(simulated.ProcessSpec{Image: `C:\hpc\agent.exe`, ParentPID: 99996, Started: long})
	young := n.Machine.AddProcess(simulated.ProcessSpec{Image: shimImage,
		CommandLine: shimImage + ` -namespace k8s.io -id feed`})
	docker := n.Machine.AddProcess(simulated.ProcessSpec{
		Image: `C:\docker\containerd-shim-runhcs-v1.exe`, Started: long, CommandLine: `shim -namespace moby -id 1`,
	})

	table := look(t, n)

	switch {
	case len(table.Pods) != 1:
		t.Fatalf("len(table.Pods) = %v, want 1: %+v", len(table.Pods), table.Pods)
	case table.Pods[0].Path() != "default/burner":
		t.Fatalf("table.Pods[0].Path() = %q, want %q", table.Pods[0].Path(), "default/burner")
	case len(table.Gaps) > 0:
		t.Fatalf("len(table.Gaps) = %v, want 0; pods: %+v, gaps %q", len(table.Gaps), table.Pods, table.Gaps)
	}
	pod := table.Pods[0]
	switch {
	case !slices.Equal(names(pod.Shims), []string{"containerd-shim-runhcs-v1.exe"}):
		t.Errorf("names(pod.Shims) is wrong; pod: %+v", pod)
	case !slices.Equal(names(pod.Sandbox), []string{"CExecSvc.exe", "pauseloop.exe"}):
		t.Errorf("names(pod.Sandbox) is wrong; pod: %+v", pod)
	case len(pod.Containers) != 1:
		t.Errorf("len(pod.Containers) = %v, want 1: %+v", len(pod.Containers), pod.Containers)
	case !slices.Equal(names(pod.Containers[0].Processes),
		[]string{"CExecSvc.exe", "burn.exe"}):
		t.Errorf("names(pod.Containers[0].Processes) is wrong; pod: %+v", pod)
	}
	burn := pod.Containers[0].Processes[1]
	// It uses 0.2 cores; time passes between reading the clock and the process.
	switch {
	case burn.PID != pod.Containers[0].Task:
		t.Errorf("burn.PID = %v, want %v", burn.PID, pod.Containers[0].Task)
	case burn.Cores == nil:
		t.Error("burn.Cores is nil")
	case *burn.Cores < 0.02:
		t.Errorf("*burn.Cores = %v, want at least 0.02", *burn.Cores)
	case *burn.Cores > 2:
		t.Errorf("*burn.Cores = %v, want at most 2", *burn.Cores)
	case burn.Handles == 0:
		t.Error("burn.Handles = 0")
	case burn.Threads == 0:
		t.Errorf("burn.Threads = 0; burn.exe: %+v", burn)
	}
	var services []string
	for _, s := range table.Services {
		services = append(services, s.Name+" "+strings.Join(names(s.Processes), ","))
	}
	if want := []string{"kubelet kubelet.exe", "containerd containerd.exe",
		"kube-proxy kube-proxy.exe"}; !slices.Equal(services, want) {
		t.Errorf("services %q", services)
	}
	var orphans []uint32
	for _, o := range table.Orphans {
		orphans = append(orphans, o.PID)
	}
	if !slices.Equal(orphans, []uint32{orphan, below, left}) || table.Orphans[0].Sandbox != "deadbeef" {
		t.Errorf("orphans %+v", table.Orphans)
	}
	if len(table.Unsettled) != 1 || table.Unsettled[0].PID != young {
		t.Errorf("unsettled %+v", table.Unsettled)
	}
	if !slices.ContainsFunc(table.Others, func(p owners.Process) bool { return p.PID == docker }) {
		t.Errorf("others %+v", table.Others)
	}
	once(t, table)
}

// once checks that no process is shown twice.
func once(t *testing.T, table owners.Table) {
	t.Helper()
	seen := map[uint32]bool{}
	count := func(processes ...owners.Process) {
		for _, p := range processes {
			if seen[p.PID] {
				t.Errorf("%d %s is shown twice", p.PID, p.Name)
			}
			seen[p.PID] = true
		}
	}
	for _, pod := range table.Pods {
		count(pod.Shims...)
		count(pod.Sandbox...)
		for _, c := range pod.Containers {
			count(c.Processes...)
		}
	}
	for _, s := range table.Services {
		count(s.Processes...)
	}
	for _, o := range append(slices.Clone(table.Orphans), table.Unsettled...) {
		count(o.Process)
	}
	count(table.Others...)
}

// Pods survive the end of the runtime, which is reported as a gap.
func TestWithoutTheRuntime(t *testing.T) {
	n := nodetest.Start(t, "win1", simulated.Options{})
	before := look(t, n)
	if _, err := n.Services.Stop(t.Context(), &agentv1.StopServiceRequest{Name: "containerd"}); err != nil {
		t.Fatal(err)
	}
	table := look(t, n)
	switch {
	case len(table.Gaps) != 1:
		t.Errorf("len(table.Gaps) = %v, want 1: %+v", len(table.Gaps), table.Gaps)
	case !strings.Contains(table.Gaps[0], "pods and orphaned shims are unknown"):
		t.Errorf("table.Gaps[0] lacks %q:\n%s", "pods and orphaned shims are unknown", table.Gaps[0])
	case len(table.Orphans) > 0:
		t.Errorf("len(table.Orphans) = %v, want 0; gaps %q, orphans %+v", len(table.Orphans), table.Gaps, table.Orphans)
	}
	switch {
	case len(table.Pods) != 1:
		t.Errorf("len(table.Pods) = %v, want 1: %+v", len(table.Pods), table.Pods)
	case table.Pods[0].ID != before.Pods[0].ID:
		t.Errorf("table.Pods[0].ID = %v, want %v", table.Pods[0].ID, before.Pods[0].ID)
	case table.Pods[0].State != "unknown":
		t.Errorf("table.Pods[0].State = %q, want %q", table.Pods[0].State, "unknown")
	case table.Pods[0].Shims[0].PID != before.Pods[0].Shims[0].PID:
		t.Errorf("table.Pods[0].Shims[0].PID = %v, want %v; pods %+v", table.Pods[0].Shims[0].PID,
			before.Pods[0].Shims[0].PID, table.Pods)
	}
	once(t, table)
}

// Gather finds the same orphans and owners as Observe, and reports no CPU usage.
func TestGatherWaitsForNoCPUUsage(t *testing.T) {
	n := nodetest.Start(t, "win1", simulated.Options{})
	orphan := n.Machine.AddProcess(simulated.ProcessSpec{Image: shimImage, Started: time.Now().Add(-time.Hour),
		CommandLine: `"` + shimImage + `" -namespace k8s.io -id deadbeef serve`})
	table, err := owners.Gather(t.Context(), n.Node)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Orphans) != 1 || table.Orphans[0].PID != orphan || len(table.Pods) != 1 || len(table.Services) == 0 {
		t.Fatalf("%+v", table)
	}
	for _, p := range append(table.Pods[0].Shims, table.Orphans[0].Process) {
		if p.Cores != nil {
			t.Errorf("%s uses %v cores", p.Name, *p.Cores)
		}
	}
}
