package hcs

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report is the result of `swdt hcs list`.
type Report struct {
	Nodes []NodeReport `json:"nodes"`

	results []fleet.Result[Systems]
}

// NodeReport has the compute systems of one node.
type NodeReport struct {
	fleet.Outcome
	Systems []OwnedSystem `json:"systems"`
}

// OwnedSystem is a compute system and its owner.
type OwnedSystem struct {
	System
	Pod       string `json:"pod"`
	Container string `json:"container"`
}

// NewReport returns the report of the compute systems of nodes.
func NewReport(results []fleet.Result[Systems]) Report {
	report := Report{Nodes: []NodeReport{}, results: results}
	for _, result := range results {
		of := NodeReport{Outcome: result.Outcome(), Systems: []OwnedSystem{}}
		for _, system := range result.Value.All {
			pod, container := result.Value.Owner(system)
			of.Systems = append(of.Systems, OwnedSystem{system, pod, container})
		}
		report.Nodes = append(report.Nodes, of)
	}
	return report
}

// Names returns the compute systems of all nodes, as KIND/ID.
func (r Report) Names() (all []string) {
	for _, n := range r.Nodes {
		for _, s := range n.Systems {
			all = append(all, "computesystem/"+s.ID)
		}
	}
	return all
}

// Columns returns the columns of the table of one node. If wide is true, they are those of -o wide.
func Columns(wide bool) []string { return Systems{}.table(wide).Header }

// WriteText writes the compute systems of all nodes that answered.
func (r Report) WriteText(p *ui.Page) error {
	return fleet.WriteListings(p, r.results, func(c Systems) ui.Listing { return c.table(p.Wide) })
}

// table returns a table of the systems. If wide is true, the table has whole IDs.
func (c Systems) table(wide bool) ui.Listing {
	t := ui.Listing{Nothing: "no compute systems", Header: []string{"ID", "POD", "CONTAINER", "ISOLATION", "STATE",
		"MEMORY", "CPU TIME", "PROCESSES", "OWNER"}}
	for _, s := range c.All {
		pod, container := c.Owner(s)
		if container == "" && pod != hns.None && pod != hns.Unknown {
			container = "(sandbox)"
		}
		id, memory, cpu, processes := Short(s.ID), "", "", ""
		if wide {
			id = s.ID
		}
		if s.Memory != nil {
			memory = ui.Size(int64(s.Memory.PrivateWorkingSet))
		}
		if s.CPU != nil {
			cpu = ui.Seconds(s.CPU.Total)
		}
		if len(s.Processes) > 0 {
			processes = strconv.Itoa(len(s.Processes))
		}
		t.Rows = append(t.Rows, []string{
			id, pod, container, string(s.Isolation), strings.ToLower(s.State), memory, cpu, processes,
			ownerName(s.Owner),
		})
	}
	return t
}

// ownerName returns a program's name without its folder and without the suffix .exe.
func ownerName(program string) string {
	return strings.TrimSuffix(path.Base(strings.ReplaceAll(program, `\`, "/")), ".exe")
}

// These are values of Killed.Result.
const (
	killed    = "killed"
	wouldKill = "wouldKill"
)

// KillReport is the result of `swdt hcs kill`.
type KillReport struct {
	Nodes []Killed `json:"nodes"` // always one node
}

// Killed is a compute system that was ended or, in a dry run, would be ended.
type Killed struct {
	fleet.Outcome        // Result is killed, wouldKill or failed
	ID            string `json:"id"`
	Pod           string `json:"pod"`
	Container     string `json:"container"`
}

// NewKilled returns the report about one compute system of a node, as killed or, for a dry
// run, as one that would be killed.
func (c Systems) NewKilled(node string, s System, dryRun bool) Killed {
	k := Killed{Outcome: fleet.NewOutcome(node, killed, nil), ID: s.ID}
	k.Pod, k.Container = c.Owner(s)
	if dryRun {
		k.Result = wouldKill
	}
	return k
}

// String returns a description of the compute system for people.
func (k Killed) String() string {
	if k.Pod == hns.None {
		return "compute system " + Short(k.ID) + ", which belongs to no pod"
	}
	if k.Pod == hns.Unknown {
		return "compute system " + Short(k.ID) + ", whose owner is not known"
	}
	if k.Container == "" {
		return "the pod sandbox of " + k.Pod + " (" + Short(k.ID) + ")"
	}
	return "container " + k.Container + " of pod " + k.Pod + " (" + Short(k.ID) + ")"
}

// WriteText writes a line for each compute system that was ended or would be ended.
func (r KillReport) WriteText(p *ui.Page) error {
	words := map[string]string{killed: "killed ", wouldKill: "would kill "}
	for _, k := range r.Nodes {
		if _, err := fmt.Fprintln(p, words[k.Result]+k.String()); err != nil {
			return err
		}
	}
	return nil
}
