package owners

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// row is a line of the table: a process, or an owner that has no process.
type row struct {
	node, owner, part string
	process           *Process // nil: the owner has no process
	state             string   // the state of an owner without a process
	image             string   // of a container
}

// rows returns the lines of all nodes, sorted.
func (l Report) rows() []row {
	var rows []row
	for _, n := range l.Nodes {
		of := l.selection.rows(n.Table)
		for i := range of {
			of[i].node = n.Name
		}
		rows = append(rows, of...)
	}
	livetable.Sort(rows, columns(), l.selection.Choice)
	return rows
}

// Columns returns the names of the columns by which the table can be sorted.
func Columns() []string { return livetable.Names(columns()) }

// columns returns the columns by which the table can be sorted. Rows without a process are
// last, unless the table is sorted by owner.
func columns() []livetable.Column[row] {
	number := func(of func(*Process) float64) func(a, b row) int {
		weight := func(r row) float64 {
			if r.process == nil {
				return -1
			}
			return of(r.process)
		}
		return func(a, b row) int { return cmp.Compare(weight(b), weight(a)) }
	}
	return []livetable.Column[row]{
		{Name: "owner"}, // sorts by the order in which owners are listed
		{Name: "cpu", Compare: number(func(p *Process) float64 {
			if p.Cores == nil {
				return 0
			}
			return *p.Cores
		})},
		{Name: "memory", Compare: number(func(p *Process) float64 { return float64(p.MemoryBytes) })},
		{Name: "handles", Compare: number(func(p *Process) float64 { return float64(p.Handles) })},
		{Name: "uptime", Compare: number(func(p *Process) float64 { return p.UptimeSeconds })},
		{Name: "program", Compare: func(a, b row) int { return natural.Compare(a.program(), b.program()) }},
	}
}

// program returns the process's name. If the row has no process, it returns a word that
// sorts last.
func (r row) program() string {
	if r.process == nil {
		return "~"
	}
	return strings.ToLower(r.process.Name)
}

// filter is the text that rows must contain.
type filter struct{ livetable.Choice }

// filtered returns the part of a table that matches the filter. Every output format shows only this
// part.
func (o filter) filtered(t Table) Table {
	if o.Filter == "" {
		return t
	}
	t.Pods = chosen(t.Pods, func(p *Pod) bool { return o.filterPod(p) })
	t.Services = chosen(t.Services, func(s *Service) bool {
		if !o.Matches("service "+s.Name, s.State) {
			s.Processes = o.processes(s.Processes)
		}
		return o.Matches("service "+s.Name, s.State) || len(s.Processes) > 0
	})
	t.Orphans = chosen(t.Orphans,
		func(p *Orphan) bool { return o.Matches("nobody", partOf(*p)) || o.process(p.Process) })
	t.Unsettled = chosen(t.Unsettled,
		func(p *Orphan) bool { return o.Matches("not known yet", partOf(*p)) || o.process(p.Process) })
	t.Others = o.processes(t.Others)
	return t
}

// filterPod removes the parts of a pod that do not match the filter, and reports whether any
// part is left.
func (o filter) filterPod(p *Pod) bool {
	if o.Matches(p.Path()) {
		return true
	}
	if !o.Matches("shim") {
		p.Shims = o.processes(p.Shims)
	}
	if !o.Matches("sandbox") {
		p.Sandbox = o.processes(p.Sandbox)
	}
	p.Containers = chosen(p.Containers, func(c *Container) bool {
		if o.Matches(c.Name, c.Image) {
			return true
		}
		c.Processes = o.processes(c.Processes)
		return len(c.Processes) > 0
	})
	return len(p.Shims)+len(p.Sandbox)+len(p.Containers) > 0
}

func (o filter) processes(all []Process) []Process {
	return chosen(all, func(p *Process) bool { return o.process(*p) })
}

func (o filter) process(p Process) bool { return o.Matches(p.Name, fmt.Sprint(p.PID)) }

// chosen returns copies of the elements for which the given function returns true. The function
// gets a pointer to the copy of an element, and may change the copy.
func chosen[T any](all []T, keep func(*T) bool) []T {
	kept := []T{}
	for _, one := range all {
		if keep(&one) {
			kept = append(kept, one)
		}
	}
	return kept
}

func (o Selection) rows(t Table) (rows []row) {
	for _, pod := range t.Pods {
		rows = append(rows, o.podRows(pod)...)
	}
	for _, service := range t.Services {
		owner := "service " + service.Name
		if len(service.Processes) == 0 {
			rows = append(rows, row{owner: owner, state: service.State})
		}
		rows = append(rows, processRows(owner, "", "", service.Processes)...)
	}
	for _, orphan := range t.Orphans {
		rows = append(rows, row{owner: "nobody", part: partOf(orphan), process: &orphan.Process})
	}
	for _, orphan := range t.Unsettled {
		rows = append(rows, row{owner: "not known yet", part: partOf(orphan), process: &orphan.Process})
	}
	return append(rows, processRows("", "", "", t.Others)...)
}

func (o Selection) podRows(pod Pod) []row {
	owner := pod.Path()
	if pod.Name == "" {
		owner = "pod " + pod.ID[:min(13, len(pod.ID))]
	}
	rows := processRows(owner, "shim", "", pod.Shims)
	rows = append(rows, processRows(owner, "sandbox", "", pod.Sandbox)...)
	for _, c := range pod.Containers {
		if len(c.Processes) == 0 && (c.State == "running" || o.All) {
			rows = append(rows, row{owner: owner, part: c.Name, state: c.State, image: c.Image})
		}
		rows = append(rows, processRows(owner, c.Name, c.Image, c.Processes)...)
	}
	if len(rows) == 0 {
		rows = append(rows, row{owner: owner, part: "sandbox", state: pod.State})
	}
	return rows
}

func processRows(owner, part, image string, processes []Process) (rows []row) {
	for i := range processes {
		rows = append(rows, row{owner: owner, part: part, image: image, process: &processes[i]})
	}
	return rows
}

func partOf(o Orphan) string {
	if o.Sandbox != "" {
		return "shim"
	}
	return ""
}

func (r row) cells() []string {
	p := r.process
	if p == nil {
		return []string{r.owner, r.part, "", "", "", "", "", "(" + r.state + ")", r.image}
	}
	uptime := ""
	if p.Started != nil {
		uptime = ui.Age(time.Duration(p.UptimeSeconds * float64(time.Second)))
	}
	return []string{
		r.owner, r.part, fmt.Sprint(p.PID), coresOf(p.Cores), ui.Size(int64(p.MemoryBytes)), fmt.Sprint(p.Handles),
		uptime, p.Name, r.image,
	}
}

// moreCells returns the additional cells of -o wide. They do not include the command line,
// which may contain a secret.
func (r row) moreCells() []string {
	p := r.process
	if p == nil {
		return make([]string, 5)
	}
	started := ""
	if p.Started != nil {
		started = p.Started.UTC().Format(time.RFC3339)
	}
	return []string{fmt.Sprint(p.ParentPID), fmt.Sprint(p.Threads), fmt.Sprint(p.Session), started, p.Image}
}

func coresOf(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", *v)
}
