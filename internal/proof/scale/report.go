package scale

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// shownFaults bounds the Services with problems that a text lists for each phase of a node.
const shownFaults = 10

// WriteText writes a line for each phase of each node, then the problems, and what the run itself cost.
func (r Report) WriteText(p *ui.Page) error {
	if err := ui.Table(p, Columns(p.Wide), r.rows(p.Wide)); err != nil {
		return err
	}
	for _, n := range r.Nodes {
		if err := n.writeProblems(p); err != nil {
			return err
		}
	}
	if err := r.writeCost(p); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p, "%s: %s on %s in %s\n", r.coloured(), r.Load, nodes(len(r.Nodes)), seconds(r.Seconds))
	return err
}

// Columns returns the columns of the table of a Report. If wide is true, they are those of -o wide.
func Columns(wide bool) []string {
	header := []string{"NODE", "PHASE", "PROGRAMMED", "HALF", "90%", "99%", "ALL", "RESOLUTION", "SYNCS", "PROXY CPU",
		"HNS CPU", "MEMORY"}
	if wide {
		header = append(header, "ALL AFTER LAST", "PROXY AFTER LAST", "MEAN SYNC", "LONGEST SYNC", "HANDLES")
	}
	return header
}

func (r Report) rows(wide bool) [][]string {
	rows := [][]string{}
	for _, n := range r.Nodes {
		for _, phase := range n.Phases {
			row := append([]string{n.Name, phase.Phase}, phase.cells()...)
			if phase.FaultCount > 0 {
				row[2] = ui.Bad(row[2])
			}
			if wide {
				row = append(row, phase.wideCells()...)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func (p NodePhase) cells() []string {
	count := fmt.Sprintf("%d of %d", p.Programmed, p.Services)
	times := []string{"-", "-", "-", "-", "-"}
	if p.Programmed > 0 {
		times = []string{seconds(p.Time.Half), seconds(p.Time.P90), seconds(p.Time.P99), seconds(p.Time.Max),
			seconds(p.Resolution.Half)}
	}
	syncs, memory, hns := "-", "-", "-"
	if p.Metrics {
		syncs = fmt.Sprint(p.Syncs.Count)
	}
	if p.ProxyMemoryBytes > 0 {
		memory = ui.Size(int64(min(p.ProxyMemoryBytes, 1<<62)))
	}
	if p.CPU.HNSSeconds > 0 {
		hns = seconds(p.CPU.HNSSeconds)
	}
	proxy := "-"
	if p.ProxyMemoryBytes > 0 {
		proxy = seconds(p.CPU.ProxySeconds)
	}
	return append(append([]string{count}, times...), syncs, proxy, hns, memory)
}

func (p NodePhase) wideCells() []string {
	cells := []string{"-", "-", "-", "-", "-"}
	if p.Programmed == p.Services && p.Services > 0 {
		cells[0] = seconds(p.AllSeconds)
	}
	if p.ProxySettled {
		cells[1] = seconds(p.ProxySeconds)
	}
	if p.Syncs.Count > 0 {
		cells[2], cells[3] = seconds(p.Syncs.MeanSeconds), "more"
		if p.Syncs.MaxSeconds > 0 {
			cells[3] = "≤" + seconds(p.Syncs.MaxSeconds)
		}
	}
	if p.ProxyHandles > 0 {
		cells[4] = fmt.Sprint(p.ProxyHandles)
	}
	return cells
}

// writeProblems writes what went wrong on a node.
func (n NodeReport) writeProblems(p *ui.Page) error {
	var lines []string
	for _, phase := range n.Phases {
		for i, f := range phase.Faults {
			if i == shownFaults && !p.Wide {
				break
			}
			lines = append(lines, fmt.Sprintf("%s: %s: %s", n.Name, phase.Phase, f))
		}
		if rest := phase.FaultCount - shownFaults; rest > 0 && !p.Wide {
			lines = append(lines, fmt.Sprintf("%s: %s: and %d more", n.Name, phase.Phase, rest))
		}
		if phase.ProxyRestarts > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s: the proxy's process ended %d times", n.Name, phase.Phase,
				phase.ProxyRestarts))
		}
	}
	for _, f := range n.Failures {
		lines = append(lines, fmt.Sprintf("%s: %s: %d × %s", n.Name, f.source(), f.Count, f.Message))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(p, line); err != nil {
			return err
		}
	}
	return nil
}

func (f Fault) String() string {
	words := map[string]string{
		Missing: "HNS has no load balancer with its address", WrongEndpoints: "its load balancer has other endpoints",
		Left: "its load balancer is still in HNS", Unknown: "HNS did not answer",
		Slow: "programmed after " + seconds(f.Seconds),
	}
	return fmt.Sprintf("%s (%s): %s", f.Service, f.Address, cmp.Or(words[f.Problem], f.Problem))
}

func (f Failure) source() string {
	switch f.Source {
	case FromLog:
		return "the proxy logged"
	case FromMetrics:
		return "the proxy's metrics count since its start"
	}
	return "swdt got no answer"
}

// writeCost writes the API server's part and that of swdt itself.
func (r Report) writeCost(p *ui.Page) error {
	for _, phase := range r.Phases {
		w := phase.Writes
		if w.Objects == 0 {
			continue
		}
		limit := ""
		if w.Limit > 0 && w.Objects > 1 {
			limit = fmt.Sprintf(", at most %g a second", w.Limit)
		}
		_, err := fmt.Fprintf(p, "API server: %s: %d requests in %s%s; half took %s, 99%% %s\n", phase.Phase, w.Objects,
			seconds(w.Seconds), limit, seconds(w.Request.Half), seconds(w.Request.P99))
		if err != nil {
			return err
		}
	}
	for _, n := range r.Nodes {
		c := n.Cost
		_, err := fmt.Fprintf(p, "swdt itself: %s: %d calls, %s; %d looks at HNS took %s; its agent used %s of CPU time\n",
			n.Name, c.Calls, ui.Size(c.Bytes), c.Looks, seconds(c.LookSeconds), seconds(c.AgentCPUSeconds))
		if err != nil {
			return err
		}
	}
	return nil
}

func (r Report) coloured() string {
	switch r.Result {
	case Programmed:
		return ui.Good(r.Result)
	case Failed:
		return ui.Bad(r.Result)
	}
	text := ui.Warn(r.Result)
	if r.Error != "" {
		line, _, _ := strings.Cut(r.Error, "\n")
		text += " (" + line + ")"
	}
	return text
}

func nodes(count int) string {
	if count == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", count)
}

// Names returns the nodes that programmed all Services, for -o name.
func (r Report) Names() (all []string) {
	for _, n := range r.Nodes {
		good := len(n.Phases) > 0
		for _, p := range n.Phases {
			good = good && p.FaultCount == 0 && p.ProxyRestarts == 0
		}
		if good {
			all = append(all, "node/"+n.Name)
		}
	}
	return all
}
