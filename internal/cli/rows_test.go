package cli

import (
	"slices"
	"testing"

	"github.com/swdt-dev/swdt/internal/stats"
	"github.com/swdt-dev/swdt/internal/tasks"
)

// Every column of ps puts another of these rows first, and none puts a row without a
// process before one that has one.
func TestColumnsOfPs(t *testing.T) {
	cores := 0.5
	table := tasks.Table{Services: []tasks.Service{
		{Name: "stopped", State: "stopped"},
		{Name: "many", Processes: []tasks.Process{{PID: 1, Name: "n10.exe", Handles: 900}}},
		{Name: "busy", Processes: []tasks.Process{{PID: 2, Name: "n3.exe", Cores: &cores}}},
		{Name: "large", Processes: []tasks.Process{{PID: 3, Name: "N4.exe", MemoryBytes: 5}}},
		{Name: "old", Processes: []tasks.Process{{PID: 4, Name: "n5.exe", UptimeSeconds: 5}}},
		{Name: "first", Processes: []tasks.Process{{PID: 5, Name: "n2.exe"}}},
	}}
	for column, want := range map[string]string{
		"owner": "service stopped", "cpu": "service busy", "memory": "service large", "handles": "service many", "uptime": "service old", "program": "service first",
	} {
		rows := psList{Nodes: []psNode{{Table: table}}, options: &psOptions{choice: rowOptions{sort: column}}}.rows()
		if rows[0].owner != want {
			t.Errorf("--sort %s: %s is first, want %s", column, rows[0].owner, want)
		}
		if column != "owner" && rows[len(rows)-1].owner != "service stopped" {
			t.Errorf("--sort %s: %s is last", column, rows[len(rows)-1].owner)
		}
	}
	if len(psColumns()) != 6 {
		t.Errorf("%v: test them all", columnNames(psColumns()))
	}
}

// The filter takes whole owners, or the processes that have the text.
func TestFilterOfPs(t *testing.T) {
	p := func(pid uint32, name string) tasks.Process { return tasks.Process{PID: pid, Name: name} }
	table := tasks.Table{
		Pods: []tasks.Pod{{
			Namespace: "default", Name: "web", Shims: []tasks.Process{p(1, "shim-v1.exe")}, Sandbox: []tasks.Process{p(2, "pause.exe")},
			Containers: []tasks.Container{{Name: "app", Image: "registry/Nginx", Processes: []tasks.Process{p(3, "a.exe"), p(4, "b.exe")}}},
		}},
		Services: []tasks.Service{{Name: "kubelet", State: "running", Processes: []tasks.Process{p(5, "kubelet.exe"), p(6, "helper.exe")}}},
		Orphans:  []tasks.Orphan{{Process: p(7, "left.exe"), Sandbox: "x"}},
		Others:   []tasks.Process{p(88, "svchost.exe")},
	}
	for text, want := range map[string][]uint32{
		"": {1, 2, 3, 4, 5, 6, 7, 88}, "WEB": {1, 2, 3, 4}, "nginx": {3, 4}, "b.exe": {4}, "pause": {2}, "service kubelet": {5, 6}, "helper": {6},
		"nobody": {7}, "shim": {1, 7}, "88": {88}, "nothing": nil,
	} {
		o := &psOptions{choice: rowOptions{filter: text}}
		var got []uint32
		for _, row := range o.rows(o.choice.filtered(table)) {
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

// Every column of stats watch puts another container first.
func TestColumnsOfStats(t *testing.T) {
	nano, computed, memory := uint64(5e9), 0.5, uint64(7)
	rows := map[string]stats.Row{"web-2": {}, "web-10": {}, "reports": {}, "computes": {}, "large": {}, "late": {}}
	for pod, row := range rows {
		switch row.Key.Container.Pod = pod; pod {
		case "reports":
			row.Point.Reported = &nano
		case "computes":
			row.Computed = &computed
		case "large":
			row.Point.Memory = &memory
		case "late":
			row.Age = 9
		}
		rows[pod] = row
	}
	for column, want := range map[string]string{"reported": "reports", "computed": "computes", "memory": "large", "age": "late", "container": "computes", "faults": "web-10"} {
		table := newStatsTable(nil, column)
		for pod, row := range rows {
			table.series[pod] = &tableRow{last: row, faults: map[stats.Verdict]int{}}
		}
		table.series["web-10"].total = 1
		lines := table.lines()
		if lines[0][0] != want {
			t.Errorf("--sort %s: %s is first, want %s", column, lines[0][0], want)
		}
		if column == "container" && (lines[4][0] != "web-2" || lines[5][0] != "web-10") {
			t.Errorf("--sort container: %s, %s at the end", lines[4][0], lines[5][0])
		}
	}
}
