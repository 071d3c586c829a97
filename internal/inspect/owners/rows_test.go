package owners

import (
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// Every column of ps puts another of these rows first, and none puts a row without a
// process before one that has one.
func TestColumnsOfPs(t *testing.T) {
	cores := 0.5
	table := Table{Services: []Service{
		{Name: "stopped", State: "stopped"},
		{Name: "many", Processes: []Process{{PID: 1, Name: "n10.exe", Handles: 900}}},
		{Name: "busy", Processes: []Process{{PID: 2, Name: "n3.exe", Cores: &cores}}},
		{Name: "large", Processes: []Process{{PID: 3, Name: "N4.exe", MemoryBytes: 5}}},
		{Name: "old", Processes: []Process{{PID: 4, Name: "n5.exe", UptimeSeconds: 5}}},
		{Name: "first", Processes: []Process{{PID: 5, Name: "n2.exe"}}},
	}}
	for column, want := range map[string]string{
		"owner": "service stopped", "cpu": "service busy", "memory": "service large", "handles": "service many",
		"uptime": "service old", "program": "service first",
	} {
		rows := Report{Nodes: []NodeReport{{Table: table}},
			selection: Selection{Choice: livetable.Choice{Sort: column}}}.rows()
		if rows[0].owner != want {
			t.Errorf("--sort %s: %s is first, want %s", column, rows[0].owner, want)
		}
		if column != "owner" && rows[len(rows)-1].owner != "service stopped" {
			t.Errorf("--sort %s: %s is last", column, rows[len(rows)-1].owner)
		}
	}
	if len(columns()) != 6 {
		t.Errorf("%v: test them all", Columns())
	}
}

// The filter takes whole owners, or the processes that have the text.
func TestFilterOfPs(t *testing.T) {
	p := func(pid uint32, name string) Process { return Process{PID: pid, Name: name} }
	table := Table{
		Pods: []Pod{{
			Namespace: "default", Name: "web", Shims: []Process{p(1, "shim-v1.exe")},
			Sandbox: []Process{p(2, "pause.exe")},
			Containers: []Container{{Name: "app", Image: "registry/Nginx",
				Processes: []Process{p(3, "a.exe"), p(4, "b.exe")}}},
		}},
		Services: []Service{{Name: "kubelet", State: "running",
			Processes: []Process{p(5, "kubelet.exe"), p(6, "helper.exe")}}},
		Orphans: []Orphan{{Process: p(7, "left.exe"), Sandbox: "x"}},
		Others:  []Process{p(88, "svchost.exe")},
	}
	for text, want := range map[string][]uint32{
		"": {1, 2, 3, 4, 5, 6, 7, 88}, "WEB": {1, 2, 3, 4}, "nginx": {3, 4}, "b.exe": {4}, "pause": {2},
		"service kubelet": {5, 6}, "helper": {6},
		"nobody": {7}, "shim": {1, 7}, "88": {88}, "nothing": nil,
	} {
		s := Selection{Choice: livetable.Choice{Filter: text}}
		var got []uint32
		for _, row := range s.rows(filter{s.Choice}.filtered(table)) {
			if row.process == nil {
				t.Errorf("--filter %q leaves %+v", text, row)
				continue
			}
			got = append(got, row.process.PID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("--filter %q: %d, want %d", text, got, want)
		}
	}
	if len(table.Pods[0].Containers[0].Processes) != 2 {
		t.Error("the filter changed the table that it was given")
	}
}

func TestReversedRows(t *testing.T) {
	rows := []row{{process: &Process{MemoryBytes: 1}}, {process: &Process{MemoryBytes: 3}}, {}}
	livetable.Sort(rows, columns(), livetable.Choice{Sort: "memory", Reverse: true})
	if rows[0].process != nil || rows[1].process.MemoryBytes != 1 {
		t.Errorf("got %+v", rows)
	}
}

func TestEveryColumnIsMarked(t *testing.T) {
	header := []string{"OWNER", "CORES", "MEMORY", "HANDLES", "UPTIME", "PROGRAM"}
	v := livetable.NewView(Columns(), Columns()[0])
	for range Columns() {
		if marked := strings.Join(v.Mark(header, map[string]string{"cpu": "CORES"}), " "); strings.Count(marked,
			"↓") != 1 {
			t.Errorf("sorted by %s: %s", v.Current("").Sort, marked)
		}
		v.Press([]byte("s"))
	}
}
