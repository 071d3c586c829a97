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

	if len(table.Pods) != 1 || table.Pods[0].Path() != "default/burner" || len(table.Gaps) > 0 {
		t.Fatalf("pods: %+v, gaps %q", table.Pods, table.Gaps)
	}
	pod := table.Pods[0]
	if !slices.Equal(names(pod.Shims), []string{"containerd-shim-runhcs-v1.exe"}) ||
		!slices.Equal(names(pod.Sandbox), []string{"CExecSvc.exe", "pauseloop.exe"}) ||
		len(pod.Containers) != 1 || !slices.Equal(names(pod.Containers[0].Processes),
		[]string{"CExecSvc.exe", "burn.exe"}) {
		t.Errorf("pod: %+v", pod)
	}
	burn := pod.Containers[0].Processes[1]
	// It uses 0.2 cores; time passes between reading the clock and the process.
	if burn.PID != pod.Containers[0].Task || burn.Cores == nil || *burn.Cores < 0.02 || *burn.Cores > 2 ||
		burn.Handles == 0 || burn.Threads == 0 {
		t.Errorf("burn.exe: %+v", burn)
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
	if len(table.Gaps) != 1 || !strings.Contains(table.Gaps[0], "pods and orphaned shims are unknown") ||
		len(table.Orphans) > 0 {
		t.Errorf("gaps %q, orphans %+v", table.Gaps, table.Orphans)
	}
	if len(table.Pods) != 1 || table.Pods[0].ID != before.Pods[0].ID || table.Pods[0].State != "unknown" ||
		table.Pods[0].Shims[0].PID != before.Pods[0].Shims[0].PID {
		t.Errorf("pods %+v", table.Pods)
	}
	once(t, table)
}
