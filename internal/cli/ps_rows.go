package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/maruel/natural"

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
	sortRows(rows, psColumns(), l.options.choice.sort)
	return rows
}

// psColumns are what ps sorts by. What has no process is last.
func psColumns() []column[psRow] {
	number := func(of func(*tasks.Process) float64) func(a, b psRow) int {
		weight := func(r psRow) float64 {
			if r.process == nil {
				return -1
			}
			return of(r.process)
		}
		return func(a, b psRow) int { return cmp.Compare(weight(b), weight(a)) }
	}
	return []column[psRow]{
		{"owner", nil}, // the order in which they are listed
		{"cpu", number(func(p *tasks.Process) float64 {
			if p.Cores == nil {
				return 0
			}
			return *p.Cores
		})},
		{"memory", number(func(p *tasks.Process) float64 { return float64(p.MemoryBytes) })},
		{"handles", number(func(p *tasks.Process) float64 { return float64(p.Handles) })},
		{"uptime", number(func(p *tasks.Process) float64 { return p.UptimeSeconds })},
		{"program", func(a, b psRow) int { return natural.Compare(a.program(), b.program()) }},
	}
}

// program is the process's name, and of a row without one a word that sorts last.
func (r psRow) program() string {
	if r.process == nil {
		return "~"
	}
	return strings.ToLower(r.process.Name)
}

// filtered is the part of a table that the filter leaves, the same for every format.
func (o *rowOptions) filtered(t tasks.Table) tasks.Table {
	if o.filter == "" {
		return t
	}
	t.Pods = chosen(t.Pods, func(p *tasks.Pod) bool { return o.filterPod(p) })
	t.Services = chosen(t.Services, func(s *tasks.Service) bool {
		if !o.matches("service "+s.Name, s.State) {
			s.Processes = o.processes(s.Processes)
		}
		return o.matches("service "+s.Name, s.State) || len(s.Processes) > 0
	})
	t.Orphans = chosen(t.Orphans, func(p *tasks.Orphan) bool { return o.matches("nobody", partOf(*p)) || o.process(p.Process) })
	t.Unsettled = chosen(t.Unsettled, func(p *tasks.Orphan) bool { return o.matches("not known yet", partOf(*p)) || o.process(p.Process) })
	t.Others = o.processes(t.Others)
	return t
}

// filterPod drops what the filter does not leave of a pod, and reports whether
// something is left.
func (o *rowOptions) filterPod(p *tasks.Pod) bool {
	if o.matches(p.Path()) {
		return true
	}
	if !o.matches("shim") {
		p.Shims = o.processes(p.Shims)
	}
	if !o.matches("sandbox") {
		p.Sandbox = o.processes(p.Sandbox)
	}
	p.Containers = chosen(p.Containers, func(c *tasks.Container) bool {
		if o.matches(c.Name, c.Image) {
			return true
		}
		c.Processes = o.processes(c.Processes)
		return len(c.Processes) > 0
	})
	return len(p.Shims)+len(p.Sandbox)+len(p.Containers) > 0
}

func (o *rowOptions) processes(all []tasks.Process) []tasks.Process {
	return chosen(all, func(p *tasks.Process) bool { return o.process(*p) })
}

func (o *rowOptions) process(p tasks.Process) bool { return o.matches(p.Name, fmt.Sprint(p.PID)) }

// chosen returns copies of those that keep wants; keep may change its copy.
func chosen[T any](all []T, keep func(*T) bool) []T {
	kept := []T{}
	for _, one := range all {
		if keep(&one) {
			kept = append(kept, one)
		}
	}
	return kept
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
