package owners

import (
	"cmp"
	"slices"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// sample is the list of all processes at one moment.
type sample struct {
	taken     time.Time // by the node's clock
	processes map[uint32]*agentv1.Process
}

func newSample(reply *agentv1.ListProcessesReply) sample {
	s := sample{taken: reply.GetTaken().AsTime(), processes: map[uint32]*agentv1.Process{}}
	for _, p := range reply.GetProcesses() {
		s.processes[p.GetPid()] = p
	}
	return s
}

// has returns the entry of the process p in the sample, and whether there is one. It
// compares start times too, since Windows reuses process IDs.
func (s sample) has(p *agentv1.Process) (*agentv1.Process, bool) {
	was, ok := s.processes[p.GetPid()]
	return was, ok && was.GetStarted().AsTime().Equal(p.GetStarted().AsTime())
}

// tree is a sample with the children of each process.
type tree struct {
	sample
	since    sample // the earlier sample from which CPU usage is computed; empty if it is not wanted
	children map[uint32][]uint32
}

func newTree(s, since sample) tree {
	t := tree{sample: s, since: since, children: map[uint32][]uint32{}}
	for pid, p := range s.processes {
		if parent, ok := t.parent(p); ok {
			t.children[parent.GetPid()] = append(t.children[parent.GetPid()], pid)
		}
	}
	for _, children := range t.children {
		slices.Sort(children)
	}
	return t
}

// parent returns the parent of a process, and whether the parent still runs. Windows keeps only the
// parent's process ID, and may give the ID to another process after the parent has exited. That
// other process is younger than the child, but a parent is never younger than its child.
func (t tree) parent(p *agentv1.Process) (*agentv1.Process, bool) {
	parent, ok := t.processes[p.GetParentPid()]
	if !ok || parent == p {
		return nil, false
	}
	if parent.GetStarted() != nil && p.GetStarted() != nil &&
		parent.GetStarted().AsTime().After(p.GetStarted().AsTime()) {
		return nil, false
	}
	return parent, true
}

// below returns a process and all its descendants. If the given function returns true for a
// descendant, below omits this descendant together with its own descendants.
func (t tree) below(pid uint32, stop func(uint32) bool) []uint32 {
	all := []uint32{pid}
	seen := map[uint32]bool{pid: true} // with equal start times, two processes may each seem the parent of the other
	for i := 0; i < len(all); i++ {
		for _, child := range t.children[all[i]] {
			if !seen[child] && !stop(child) {
				seen[child] = true
				all = append(all, child)
			}
		}
	}
	return all
}

// process returns the table's entry of a process.
func (t tree) process(pid uint32) Process {
	p := t.processes[pid]
	out := Process{
		PID: pid, ParentPID: p.GetParentPid(), Name: p.GetName(), Image: p.GetImage(),
		CPUSeconds: p.GetCpu().AsDuration().Seconds(), MemoryBytes: p.GetMemoryBytes(),
		Handles: p.GetHandles(), Threads: p.GetThreads(), Session: p.GetSession(), CommandLine: p.GetCommandLine(),
	}
	if p.GetStarted() != nil {
		started := p.GetStarted().AsTime()
		out.Started, out.UptimeSeconds = &started, max(0, t.taken.Sub(started).Seconds())
	}
	if was, ok := t.since.has(p); ok && t.taken.After(t.since.taken) {
		used := p.GetCpu().AsDuration() - was.GetCpu().AsDuration()
		cores := max(0, used.Seconds()/t.taken.Sub(t.since.taken).Seconds())
		out.Cores = &cores
	}
	return out
}

// list returns the table's entries of processes, the oldest first.
func (t tree) list(pids []uint32) []Process {
	all := make([]Process, 0, len(pids))
	for _, pid := range pids {
		all = append(all, t.process(pid))
	}
	slices.SortStableFunc(all, func(a, b Process) int {
		return cmp.Or(compareTimes(a.Started, b.Started), cmp.Compare(a.PID, b.PID))
	})
	return all
}

// compareTimes orders times; an unknown time comes first.
func compareTimes(a, b *time.Time) int {
	switch {
	case a != nil && b != nil:
		return a.Compare(*b)
	case a != nil:
		return 1
	case b != nil:
		return -1
	}
	return 0
}
