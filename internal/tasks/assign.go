package tasks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/maruel/natural"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/commandline"
	"github.com/swdt-dev/swdt/internal/criclient"
)

const (
	// settling is how long a pod may take from its shim's start until the runtime
	// shows it.
	settling = 30 * time.Second
	// clockStep is how much older than its container a process may look.
	clockStep = 2 * time.Second
)

// facts are what the node answered.
type facts struct {
	before, after sample
	services      []*agentv1.ServiceStatus
	folders       []string // of the runtime's programs
	runtime       runtimeAnswer
}

// assignment gives each process to one owner.
type assignment struct {
	facts
	tree
	// heads are processes that are known to be somebody's: they and what they
	// started are nobody else's.
	heads map[uint32]bool
	given map[uint32]bool
	shims map[uint32]shim
}

// shim is what a shim's command line says.
type shim struct{ namespace, id string }

// table applies all rules.
func (f facts) table() Table {
	if f.runtime.err != nil { // what it told before that is a part of who knows what
		f.runtime = runtimeAnswer{err: f.runtime.err}
	}
	a := &assignment{facts: f, tree: newTree(f.after), heads: map[uint32]bool{}, given: map[uint32]bool{}, shims: map[uint32]shim{}}
	a.findHeads()
	t := Table{
		Taken: f.after.taken.UTC(), WindowSeconds: f.after.taken.Sub(f.before.taken).Seconds(),
		Pods: a.pods(), Services: a.ofServices(), Orphans: []Orphan{},
	}
	a.orphans(&t)
	t.Others = a.others()
	if f.runtime.err != nil {
		t.Gaps = append(t.Gaps, fmt.Sprintf(
			"pods and orphaned shims are not known: %v", f.runtime.err))
	}
	return t
}

func (a *assignment) findHeads() {
	for pid, p := range a.processes {
		if isShim(p.GetName()) {
			a.heads[pid] = true
			a.shims[pid] = shim{commandline.Flag(p.GetCommandLine(), "namespace"), commandline.Flag(p.GetCommandLine(), "id")}
		}
	}
	for _, s := range a.services {
		a.heads[s.GetPid()] = s.GetPid() != 0
	}
	for _, c := range a.runtime.containers {
		if pid, ok := a.task(c.GetId(), c.GetCreatedAt()); ok {
			a.heads[pid] = true
		}
	}
	for _, pod := range a.runtime.pods {
		if pid, ok := a.task(pod.GetId(), pod.GetCreatedAt()); ok {
			a.heads[pid] = true
		}
	}
}

// task is the first process of a container or sandbox that runs. One that is older
// than its container is another, which has got the number: that of a container
// with Hyper-V isolation is a number in its virtual machine.
func (a *assignment) task(id string, created int64) (uint32, bool) {
	pid := a.runtime.pids[id]
	p, ok := a.processes[pid]
	if !ok || pid == 0 || isShim(p.GetName()) {
		return 0, false
	}
	if p.GetStarted() != nil && moment(created).Sub(p.GetStarted().AsTime()) > clockStep {
		return 0, false
	}
	return pid, true
}

// give takes a process and what it started, without what is given already.
func (a *assignment) give(pid uint32) []uint32 {
	if a.given[pid] {
		return nil
	}
	all := a.below(pid, func(child uint32) bool { return a.heads[child] || a.given[child] })
	for _, one := range all {
		a.given[one] = true
	}
	return all
}

// ofTask gives a task's processes: what the first one started, and all that are in
// its session, where that is a container's own.
func (a *assignment) ofTask(pid uint32) []Process {
	all := a.give(pid)
	if session := a.processes[pid].GetSession(); a.isContainers(session, pid) {
		for _, other := range sortedPIDs(a.processes) {
			if a.processes[other].GetSession() == session && !a.given[other] {
				all = append(all, a.give(other)...)
			}
		}
	}
	return a.list(all, a.before)
}

// isContainers is whether a session is that of one container with process
// isolation: not the services', and none with two heads, as a person's is who runs
// containers by hand.
func (a *assignment) isContainers(session, task uint32) bool {
	if session == 0 {
		return false
	}
	for pid, p := range a.processes {
		if p.GetSession() == session && pid != task && a.heads[pid] {
			return false
		}
	}
	return true
}

func (a *assignment) pods() []Pod {
	pods := []Pod{}
	if a.runtime.err != nil {
		pods = a.podsOfShims()
	}
	for _, sandbox := range a.runtime.pods {
		pods = append(pods, a.pod(sandbox))
	}
	slices.SortStableFunc(pods, func(x, y Pod) int {
		return cmp.Or(natural.Compare(x.Namespace, y.Namespace), natural.Compare(x.Name, y.Name), x.Created.Compare(y.Created))
	})
	return pods
}

func (a *assignment) pod(sandbox *runtimev1.PodSandbox) Pod {
	pod := Pod{
		Namespace: sandbox.GetMetadata().GetNamespace(), Name: sandbox.GetMetadata().GetName(), ID: sandbox.GetId(),
		State: podState(sandbox), Handler: sandbox.GetRuntimeHandler(), Created: moment(sandbox.GetCreatedAt()),
		Shims: []Process{}, Sandbox: []Process{}, Containers: []Container{},
	}
	of := map[string]bool{pod.ID: true}
	for _, c := range a.runtime.containers {
		if c.GetPodSandboxId() != pod.ID {
			continue
		}
		of[c.GetId()] = true
		pod.Containers = append(pod.Containers, a.container(c))
	}
	slices.SortStableFunc(pod.Containers, func(x, y Container) int {
		return cmp.Or(natural.Compare(x.Name, y.Name), cmp.Compare(x.Attempt, y.Attempt))
	})
	if pid, ok := a.task(pod.ID, sandbox.GetCreatedAt()); ok && !a.given[pid] {
		pod.Sandbox = a.ofTask(pid)
	}
	for _, pid := range sortedPIDs(a.shims) {
		if s := a.shims[pid]; s.namespace == kubernetesNamespace && of[s.id] {
			pod.Shims = append(pod.Shims, a.list(a.give(pid), a.before)...)
		}
	}
	return pod
}

func (a *assignment) container(c *runtimev1.Container) Container {
	out := Container{
		Name: c.GetMetadata().GetName(), ID: c.GetId(), State: containerState(c), Attempt: c.GetMetadata().GetAttempt(),
		Image: criclient.ImageOf(c, a.runtime.images), Task: a.runtime.pids[c.GetId()],
		Processes: []Process{},
	}
	if pid, ok := a.task(c.GetId(), c.GetCreatedAt()); ok && !a.given[pid] {
		out.Processes = a.ofTask(pid)
	}
	return out
}

// podsOfShims are pods as far as shims tell of them.
func (a *assignment) podsOfShims() []Pod {
	pods := []Pod{}
	for _, pid := range sortedPIDs(a.shims) {
		if s := a.shims[pid]; s.namespace == kubernetesNamespace && s.id != "" {
			pods = append(pods, Pod{
				ID: s.id, State: "unknown", Shims: a.list(a.give(pid), a.before), Sandbox: []Process{}, Containers: []Container{},
			})
		}
	}
	return pods
}

// ofServices gives the processes of those services that are a node's.
func (a *assignment) ofServices() []Service {
	services := []Service{}
	for _, name := range serviceNames() {
		i := slices.IndexFunc(a.services, func(s *agentv1.ServiceStatus) bool { return strings.EqualFold(s.GetName(), name) })
		if i < 0 {
			continue
		}
		found := a.services[i]
		service := Service{Name: found.GetName(), State: found.GetState(), Processes: []Process{}}
		if _, runs := a.processes[found.GetPid()]; runs {
			service.Processes = a.list(a.give(found.GetPid()), a.before)
		}
		services = append(services, service)
	}
	return services
}

// orphans finds what belongs to nobody.
func (a *assignment) orphans(t *Table) {
	for _, pid := range sortedPIDs(a.shims) {
		s := a.shims[pid]
		if a.given[pid] || a.runtime.err != nil || s.namespace != kubernetesNamespace || s.id == "" {
			continue
		}
		a.orphan(t, pid, s.id, "a shim of a pod that the container runtime does not know")
	}
	for _, pid := range sortedPIDs(a.processes) {
		p := a.processes[pid]
		if a.given[pid] || a.heads[pid] || !isBelow(p.GetImage(), a.folders) {
			continue
		}
		if _, ok := a.parent(p); !ok {
			a.orphan(t, pid, "", "a program of the container runtime whose starter is gone")
		}
	}
}

// orphan gives a process, and what it started, to nobody.
func (a *assignment) orphan(t *Table, pid uint32, sandbox, why string) {
	p := a.processes[pid]
	to := &t.Orphans
	if _, stood := a.before.has(p); !stood || a.taken.Sub(p.GetStarted().AsTime()) < settling {
		to = &t.Unsettled
	}
	for i, process := range a.list(a.give(pid), a.before) {
		o := Orphan{Process: process, Sandbox: sandbox, Why: why}
		if i > 0 {
			o.Why = fmt.Sprintf("started by %d, which belongs to nobody", process.ParentPID)
		}
		*to = append(*to, o)
	}
}

func (a *assignment) others() []Process {
	others := []uint32{}
	for _, pid := range sortedPIDs(a.processes) {
		if !a.given[pid] {
			others = append(others, pid)
		}
	}
	return a.list(others, a.before)
}

func sortedPIDs[V any](of map[uint32]V) []uint32 {
	pids := make([]uint32, 0, len(of))
	for pid := range of {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}
