package owners

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

func TestLoadAddsUpEachOwner(t *testing.T) {
	process := func(pid uint32, cores float64, memory uint64) Process {
		return Process{PID: pid, Name: "p.exe", Cores: &cores, MemoryBytes: memory}
	}
	young := process(9, 0, 5)
	young.Cores = nil
	table := Table{
		WindowSeconds: 1,
		Pods: []Pod{
			{Namespace: "shop", Name: "web", Shims: []Process{process(1, 0.1, 10)}, Sandbox: []Process{process(2, 0.2, 20)},
				Containers: []Container{{Processes: []Process{process(3, 0.7, 70), young}}, {}}},
			{Namespace: "shop", Name: "ended", Containers: []Container{{Name: "done"}}},
		},
		Services: []Service{{Name: "kubelet", Processes: []Process{process(4, 0.5, 500)}}},
		Orphans:  []Orphan{{Process: process(5, 0, 1)}},
		Others:   []Process{process(0, 3.5, 8), process(6, 0.25, 4)}, // 0 is the idle process
	}
	load := table.load()
	want := []Share{
		{kindPod, "shop/web", 1, 105, 4}, {kindService, "kubelet", 0.5, 500, 1}, {kindOrphan, "p.exe 5", 0, 1, 1},
		{kindOther, "other processes", 0.25, 4, 1},
	}
	for i, s := range load.Owners {
		load.Owners[i].Cores = float64(int(s.Cores*100+0.5)) / 100
	}
	if !slices.Equal(load.Owners, want) {
		t.Errorf("the owners are\n%+v, want\n%+v", load.Owners, want)
	}
	if load.Cores < 1.74 || load.Cores > 1.76 {
		t.Errorf("all use %v cores, want 1.75", load.Cores)
	}
	load.CPUs, load.MemoryBytes, load.MemoryFreeBytes, load.SystemDrive = 4, 1000, 400, "C:"
	result := fleet.Result[Load]{Value: load}
	for column, first := range map[string]string{"cpu": "shop/web", "memory": "kubelet", "owner": "shop/web"} {
		if got := NewLoadReport([]fleet.Result[Load]{result}, column).Nodes[0].Owners[0].Owner; got != first {
			t.Errorf("by %s, %s is first, want %s", column, got, first)
		}
	}
	var text bytes.Buffer
	if err := NewLoadReport([]fleet.Result[Load]{result}, "cpu").WriteText(ui.NewPage(&text, false)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "1.75 of 4 cores, 600 B of 1.0 kB memory, 0 B free on C:\n") ||
		!strings.Contains(text.String(), "service kubelet  0.50") {
		t.Errorf("the text is\n%s", text.String())
	}
}
