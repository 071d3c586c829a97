package owners

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Load has the CPU, memory and disk of a node, and the shares of the owners of its processes.
type Load struct {
	CPUs  int     `json:"cpus"`
	Cores float64 `json:"cores"` // used by all processes, the mean over windowSeconds
	// WindowSeconds is the time over which cores is measured.
	WindowSeconds   float64  `json:"windowSeconds"`
	MemoryBytes     uint64   `json:"memoryBytes"`
	MemoryFreeBytes uint64   `json:"memoryFreeBytes"`
	SystemDrive     string   `json:"systemDrive"`
	DiskFreeBytes   uint64   `json:"diskFreeBytes"` // of the system drive
	Owners          []Share  `json:"owners"`
	Gaps            []string `json:"gaps"` // the requests that were not answered
}

// Share has the CPU and memory of the processes of one owner.
type Share struct {
	Kind        string  `json:"kind"` // pod, service, orphan or other
	Owner       string  `json:"owner"`
	Cores       float64 `json:"cores"`
	MemoryBytes uint64  `json:"memoryBytes"` // the working sets
	Processes   int     `json:"processes"`
}

// These are the kinds of owners.
const (
	kindPod     = "pod"
	kindService = "service"
	kindOrphan  = "orphan"
	kindOther   = "other"
)

// LookAtLoad measures what a node and the owners of its processes use. It takes a little longer than DefaultWindow.
func LookAtLoad(ctx context.Context, n *node.Node, pipe string) (Load, error) {
	table, err := NewObserver(n, Options{Pipe: pipe}).Observe(ctx)
	if err != nil {
		return Load{}, err
	}
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return Load{}, fmt.Errorf("ask the node for its memory: %w", err)
	}
	load := table.load()
	load.CPUs, load.MemoryBytes, load.MemoryFreeBytes = int(facts.GetCpus()), facts.GetMemoryBytes(), facts.GetMemoryFreeBytes()
	load.SystemDrive, load.DiskFreeBytes = facts.GetSystemDrive(), facts.GetDiskFreeBytes()
	return load, nil
}

// load adds up the processes of each owner.
func (t Table) load() Load {
	load := Load{WindowSeconds: t.WindowSeconds, Owners: []Share{}, Gaps: append([]string{}, t.Gaps...)}
	add := func(kind, owner string, processes ...[]Process) {
		share := Share{Kind: kind, Owner: owner}
		for _, p := range slices.Concat(processes...) {
			if p.PID == 0 { // Windows counts the idle time of the processors as a process
				continue
			}
			if p.Cores != nil {
				share.Cores += *p.Cores
			}
			share.MemoryBytes += p.MemoryBytes
			share.Processes++
		}
		if share.Processes > 0 {
			load.Cores += share.Cores
			load.Owners = append(load.Owners, share)
		}
	}
	for _, p := range t.Pods {
		processes := [][]Process{p.Shims, p.Sandbox}
		for _, c := range p.Containers {
			processes = append(processes, c.Processes)
		}
		add(kindPod, p.Path(), processes...)
	}
	for _, s := range t.Services {
		add(kindService, s.Name, s.Processes)
	}
	for _, o := range slices.Concat(t.Orphans, t.Unsettled) {
		add(kindOrphan, o.Name+" "+strconv.FormatUint(uint64(o.PID), 10), []Process{o.Process})
	}
	add(kindOther, "other processes", t.Others)
	return load
}

// LoadReport is the result of `swdt top`.
type LoadReport struct {
	Nodes []NodeLoad `json:"nodes"`
}

// NodeLoad has the load of one node.
type NodeLoad struct {
	fleet.Outcome
	Load
}

// LoadColumns returns the names of the columns by which the table of a LoadReport can be sorted.
func LoadColumns() []string { return []string{"cpu", "memory", "owner"} }

// NewLoadReport returns the report of the loads of nodes, sorted by a column of LoadColumns.
func NewLoadReport(results []fleet.Result[Load], column string) LoadReport {
	report := LoadReport{Nodes: []NodeLoad{}}
	for _, r := range results {
		of := NodeLoad{r.Outcome(), r.Value}
		of.Owners, of.Gaps = append([]Share{}, of.Owners...), append([]string{}, of.Gaps...)
		slices.SortStableFunc(of.Owners, func(a, b Share) int {
			switch column {
			case "cpu":
				return cmp.Or(cmp.Compare(b.Cores, a.Cores), cmp.Compare(b.MemoryBytes, a.MemoryBytes))
			case "memory":
				return cmp.Compare(b.MemoryBytes, a.MemoryBytes)
			}
			return 0 // in the order of `swdt ps`
		})
		report.Nodes = append(report.Nodes, of)
	}
	return report
}

// LoadHeader returns the columns of the table of a LoadReport, which has no more of them with -o wide.
func LoadHeader(bool) []string { return []string{"OWNER", "CORES", "MEMORY", "PROCESSES"} }

// WriteText writes what each node that answered uses, and a table of its owners.
func (r LoadReport) WriteText(p *ui.Page) error {
	first := true
	for _, n := range r.Nodes {
		if n.Error != "" {
			continue
		}
		if !first {
			if _, err := fmt.Fprintln(p); err != nil {
				return err
			}
		}
		first = false
		_, err := fmt.Fprintf(p, "%s: %.2f of %d cores, %s of %s memory, %s free on %s\n", n.Name, n.Cores, n.CPUs,
			ui.Size(int64(n.MemoryBytes-min(n.MemoryFreeBytes, n.MemoryBytes))), ui.Size(int64(n.MemoryBytes)),
			ui.Size(int64(n.DiskFreeBytes)), n.SystemDrive)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, s := range n.Owners {
			owner := s.Owner
			if s.Kind == kindService || s.Kind == kindOrphan {
				owner = s.Kind + " " + s.Owner
			}
			rows = append(rows, []string{owner, fmt.Sprintf("%.2f", s.Cores), ui.Size(int64(s.MemoryBytes)),
				strconv.Itoa(s.Processes)})
		}
		if err := ui.TableOr(p, "no process", LoadHeader(p.Wide), rows); err != nil {
			return err
		}
	}
	return nil
}
