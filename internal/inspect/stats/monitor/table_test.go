package monitor

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// Sorting by each column of stats watch puts another container first.
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
	for column, want := range map[string]string{"reported": "reports", "computed": "computes", "memory": "large",
		"age": "late", "container": "computes", "faults": "web-10"} {
		table := newTable(nil, column)
		for pod, row := range rows {
			table.series[pod] = &tableRow{last: row, faults: map[stats.Verdict]int{}}
		}
		table.series["web-10"].total = 1
		lines := table.lines(livetable.Choice{Sort: column})
		if lines[0][0] != want {
			t.Errorf("--sort %s: %s is first, want %s", column, lines[0][0], want)
		}
		if column == "container" && (lines[4][0] != "web-2" || lines[5][0] != "web-10") {
			t.Errorf("--sort container: %s, %s at the end", lines[4][0], lines[5][0])
		}
	}
}

func TestEveryColumnOfStatsIsMarked(t *testing.T) {
	header := []string{"CONTAINER", "REPORTED", "COMPUTED", "DIFF", "MEMORY", "AGE", "FAULTS"}
	columns := Columns()
	v := livetable.NewView(columns, columns[0])
	for range columns {
		if marked := strings.Join(v.Mark(header, nil), " "); strings.Count(marked, "↓") != 1 {
			t.Errorf("sorted by %s: %s", v.Current("").Sort, marked)
		}
		v.Press([]byte("s"))
	}
}
