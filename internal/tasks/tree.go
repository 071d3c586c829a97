package tasks

import (
	"cmp"
	"slices"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// sample is all processes at one moment.
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

// has is whether the same process was there: a number may be another's by now.
func (s sample) has(p *agentv1.Process) (*agentv1.Process, bool) {
	was, ok := s.processes[p.GetPid()]
	return was, ok && was.GetStarted().AsTime().Equal(p.GetStarted().AsTime())
}

// tree is the processes of a sample by who started them.
type tree struct {
	sample
	children map[uint32][]uint32
}

func newTree(s sample) tree {
	t := tree{sample: s, children: map[uint32][]uint32{}}
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

// parent of a process, where it still lives. What Windows keeps is the number of
// the parent, which is another's once the parent has gone: nobody is younger than
// its parent.
func (t tree) parent(p *agentv1.Process) (*agentv1.Process, bool) {
	parent, ok := t.processes[p.GetParentPid()]
	if !ok || parent == p {
		return nil, false
	}
	if parent.GetStarted() != nil && p.GetStarted() != nil && parent.GetStarted().AsTime().After(p.GetStarted().AsTime()) {
		return nil, false
	}
	return parent, true
}

// below gives a process and what it started, and what that did, down to those that
// stop says are somebody else's.
func (t tree) below(pid uint32, stop func(uint32) bool) []uint32 {
	all := []uint32{pid}
	seen := map[uint32]bool{pid: true} // two that started at once may each be the other's parent
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

// process as the table has it.
func (t tree) process(pid uint32, before sample) Process {
	p := t.processes[pid]
	out := Process{
		PID: pid, ParentPID: p.GetParentPid(), Name: p.GetName(), Image: p.GetImage(),
		CPUSeconds: p.GetCpu().AsDuration().Seconds(), MemoryBytes: p.GetMemoryBytes(),
		Handles: p.GetHandles(), Threads: p.GetThreads(), Session: p.GetSession(), CommandLine: p.GetCommandLine(),
	}
	if p.GetStarted() != nil {
		out.Started = p.GetStarted().AsTime()
		out.UptimeSeconds = max(0, t.taken.Sub(out.Started).Seconds())
	}
	if was, ok := before.has(p); ok && t.taken.After(before.taken) {
		used := p.GetCpu().AsDuration() - was.GetCpu().AsDuration()
		cores := max(0, used.Seconds()/t.taken.Sub(before.taken).Seconds())
		out.Cores = &cores
	}
	return out
}

// list makes processes of numbers, the oldest first.
func (t tree) list(pids []uint32, before sample) []Process {
	all := make([]Process, 0, len(pids))
	for _, pid := range pids {
		all = append(all, t.process(pid, before))
	}
	slices.SortStableFunc(all, func(a, b Process) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.PID, b.PID))
	})
	return all
}
