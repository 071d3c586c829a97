package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/tasks"
	"github.com/swdt-dev/swdt/internal/ui"
)

// psRow is a line of the table: a process, or what has none.
type psRow struct {
	node, owner, part string
	process           *tasks.Process // nil: there is none
	state             string         // of what has no process
	image             string         // of a container
}

// rows of all nodes, by owner or by what they use.
func (l psList) rows() []psRow {
	var rows []psRow
	for _, n := range l.Nodes {
		of := l.options.rows(n.Table)
		for i := range of {
			of[i].node = n.Name
		}
		rows = append(rows, of...)
	}
	if l.options.sort != "" {
		slices.SortStableFunc(rows, func(a, b psRow) int { return cmp.Compare(l.options.weight(b), l.options.weight(a)) })
	}
	return rows
}

// weight is what rows are sorted by; what has no process weighs nothing.
func (o *psOptions) weight(r psRow) float64 {
	switch {
	case r.process == nil:
		return -1
	case o.sort == sortMemory:
		return float64(r.process.MemoryBytes)
	case r.process.Cores == nil:
		return 0
	}
	return *r.process.Cores
}

func (o *psOptions) rows(t tasks.Table) (rows []psRow) {
	for _, pod := range t.Pods {
		rows = append(rows, o.podRows(pod)...)
	}
	for _, service := range t.Services {
		owner := "service " + service.Name
		if len(service.Processes) == 0 {
			rows = append(rows, psRow{owner: owner, state: service.State})
		}
		rows = append(rows, processRows(owner, "", "", service.Processes)...)
	}
	for _, orphan := range t.Orphans {
		rows = append(rows, psRow{owner: "nobody", part: partOf(orphan), process: &orphan.Process})
	}
	for _, orphan := range t.Unsettled {
		rows = append(rows, psRow{owner: "not known yet", part: partOf(orphan), process: &orphan.Process})
	}
	return append(rows, processRows("", "", "", t.Others)...)
}

func (o *psOptions) podRows(pod tasks.Pod) []psRow {
	owner := pod.Path()
	if pod.Name == "" {
		owner = "pod " + pod.ID[:min(13, len(pod.ID))]
	}
	rows := processRows(owner, "shim", "", pod.Shims)
	rows = append(rows, processRows(owner, "sandbox", "", pod.Sandbox)...)
	for _, c := range pod.Containers {
		if len(c.Processes) == 0 && (c.State == "running" || o.all) {
			rows = append(rows, psRow{owner: owner, part: c.Name, state: c.State, image: c.Image})
		}
		rows = append(rows, processRows(owner, c.Name, c.Image, c.Processes)...)
	}
	if len(rows) == 0 {
		rows = append(rows, psRow{owner: owner, part: "sandbox", state: pod.State})
	}
	return rows
}

func processRows(owner, part, image string, processes []tasks.Process) (rows []psRow) {
	for i := range processes {
		rows = append(rows, psRow{owner: owner, part: part, image: image, process: &processes[i]})
	}
	return rows
}

func partOf(o tasks.Orphan) string {
	if o.Sandbox != "" {
		return "shim"
	}
	return ""
}

func (r psRow) cells() []string {
	p := r.process
	if p == nil {
		return []string{r.owner, r.part, "", "", "", "", "", "(" + r.state + ")", r.image}
	}
	uptime := ""
	if !p.Started.IsZero() {
		uptime = ui.Age(time.Duration(p.UptimeSeconds * float64(time.Second)))
	}
	return []string{
		r.owner, r.part, fmt.Sprint(p.PID), coresOf(p.Cores), ui.Size(int64(p.MemoryBytes)), fmt.Sprint(p.Handles), uptime, p.Name, r.image,
	}
}

func coresOf(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", *v)
}
