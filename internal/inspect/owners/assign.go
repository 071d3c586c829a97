package owners

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/maruel/natural"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

const (
	// settleTime is the maximum time from a shim's start until the runtime lists the shim's pod.
	settleTime = 30 * time.Second
	// clockTolerance is the maximum time by which a process may seem older than its
	// container.
	clockTolerance = 2 * time.Second
)

// facts are the node's answers during one Observe: the node's processes before and after the
// window, its services, and the objects of its container runtime.
type facts struct {
	before, after sample
	services      []*agentv1.ServiceStatus
	folders       []string // the folders of the runtime's programs
	runtime       runtimeAnswer
	instant       bool // the samples follow each other too closely for CPU usage
}

// assignment assigns each process to one owner.
type assignment struct {
	facts
	tree
	// heads are the first processes of known owners: shims, services, containers and pod
	// sandboxes. A head and its descendants are not assigned to the owner of the head's
	// parent.
	heads    map[uint32]bool
	assigned map[uint32]bool
	shims    map[uint32]shim
}

// shim has the containerd namespace and the ID that are on a shim's command line.
type shim struct{ namespace, id string }

// table applies all rules to the facts and returns the resulting table.
func (f facts) table() Table {
	if f.runtime.err != nil { // drop the earlier answers, since they may be incomplete
		f.runtime = runtimeAnswer{err: f.runtime.err}
	}
	since := f.before
	if f.instant {
		since = sample{}
	}
	a := &assignment{facts: f, tree: newTree(f.after, since), heads: map[uint32]bool{}, assigned: map[uint32]bool{},
		shims: map[uint32]shim{}}
	a.findHeads()
	t := Table{
		Taken: f.after.taken.UTC(), WindowSeconds: f.after.taken.Sub(f.before.taken).Seconds(),
		Pods: a.pods(), Services: a.serviceList(), Orphans: []Orphan{},
	}
	a.orphans(&t)
	t.Others = a.others()
	if f.runtime.err != nil {
		t.Gaps = append(t.Gaps, fmt.Sprintf(
			"pods and orphaned shims are unknown: %v", f.runtime.err))
	}
	return t
}

func (a *assignment) findHeads() {
	for pid, p := range a.processes {
		if isShim(p.GetName()) {
			a.heads[pid] = true
			a.shims[pid] = shim{commandline.Flag(p.GetCommandLine(), "namespace"),
				commandline.Flag(p.GetCommandLine(), "id")}
		}
	}
	for _, s := range a.services {
		a.heads[s.GetPid()] = s.GetPid() != 0
	}
	for _, c := range a.runtime.containers {
		if pid, ok := a.firstProcess(c.GetId(), c.GetCreatedAt()); ok {
			a.heads[pid] = true
		}
	}
	for _, pod := range a.runtime.pods {
		if pid, ok := a.firstProcess(pod.GetId(), pod.GetCreatedAt()); ok {
			a.heads[pid] = true
		}
	}
}

// firstProcess returns the first process of a running container or pod sandbox. It does not
// return a process that is older than the container: for a container with Hyper-V isolation,
// the runtime reports a process ID in the virtual machine, and a process of the node may have
// the same ID.
func (a *assignment) firstProcess(id string, created int64) (uint32, bool) {
	pid := a.runtime.pids[id]
	p, ok := a.processes[pid]
	if !ok || pid == 0 || isShim(p.GetName()) {
		return 0, false
	}
	if p.GetStarted() != nil && moment(created).Sub(p.GetStarted().AsTime()) > clockTolerance {
		return 0, false
	}
	return pid, true
}

// assign marks a process and its descendants as assigned, and returns them. It omits the
// descendants that are already assigned or belong to another head.
func (a *assignment) assign(pid uint32) []uint32 {
	if a.assigned[pid] {
		return nil
	}
	all := a.below(pid, func(child uint32) bool { return a.heads[child] || a.assigned[child] })
	for _, one := range all {
		a.assigned[one] = true
	}
	return all
}

// processesOf assigns and returns the processes of a container. These are its first process, the
// descendants of this process and, if the container has a session of its own, all processes of the
// session.
func (a *assignment) processesOf(first uint32) []Process {
	all := a.assign(first)
	if session := a.processes[first].GetSession(); a.isContainerSession(session, first) {
		for _, other := range sortedPIDs(a.processes) {
			if a.processes[other].GetSession() == session && !a.assigned[other] {
				all = append(all, a.assign(other)...)
			}
		}
	}
	return a.list(all)
}

// isContainerSession reports whether a session belongs to one container with process
// isolation. Session 0 belongs to services. A session with two heads belongs to a user who
// runs containers manually.
func (a *assignment) isContainerSession(session, first uint32) bool {
	if session == 0 {
		return false
	}
	for pid, p := range a.processes {
		if p.GetSession() == session && pid != first && a.heads[pid] {
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
		return cmp.Or(natural.Compare(x.Namespace, y.Namespace), natural.Compare(x.Name, y.Name),
			compareTimes(x.Created, y.Created))
	})
	return pods
}

func (a *assignment) pod(sandbox *runtimev1.PodSandbox) Pod {
	pod := Pod{
		Namespace: sandbox.GetMetadata().GetNamespace(), Name: sandbox.GetMetadata().GetName(), ID: sandbox.GetId(),
		State: podState(sandbox), Handler: sandbox.GetRuntimeHandler(), Created: momentIfKnown(sandbox.GetCreatedAt()),
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
	if pid, ok := a.firstProcess(pod.ID, sandbox.GetCreatedAt()); ok && !a.assigned[pid] {
		pod.Sandbox = a.processesOf(pid)
	}
	for _, pid := range sortedPIDs(a.shims) {
		if s := a.shims[pid]; s.namespace == kubernetesNamespace && of[s.id] {
			pod.Shims = append(pod.Shims, a.list(a.assign(pid))...)
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
	if pid, ok := a.firstProcess(c.GetId(), c.GetCreatedAt()); ok && !a.assigned[pid] {
		out.Processes = a.processesOf(pid)
	}
	return out
}

// podsOfShims returns the pods whose IDs are on the command lines of shims. It is used if the
// runtime did not answer.
func (a *assignment) podsOfShims() []Pod {
	pods := []Pod{}
	for _, pid := range sortedPIDs(a.shims) {
		if s := a.shims[pid]; s.namespace == kubernetesNamespace && s.id != "" {
			pods = append(pods, Pod{
				ID: s.id, State: "unknown", Shims: a.list(a.assign(pid)), Sandbox: []Process{},
				Containers: []Container{},
			})
		}
	}
	return pods
}

// serviceList returns the services of serviceNames that exist, and assigns their
// processes.
func (a *assignment) serviceList() []Service {
	services := []Service{}
	for _, name := range serviceNames() {
		i := slices.IndexFunc(a.services,
			func(s *agentv1.ServiceStatus) bool { return strings.EqualFold(s.GetName(), name) })
		if i < 0 {
			continue
		}
		found := a.services[i]
		service := Service{Name: found.GetName(), State: word.Of(found.GetState()), Processes: []Process{}}
		if _, runs := a.processes[found.GetPid()]; runs {
			service.Processes = a.list(a.assign(found.GetPid()))
		}
		services = append(services, service)
	}
	return services
}

// orphans finds the processes that should have an owner and have none.
func (a *assignment) orphans(t *Table) {
	for _, pid := range sortedPIDs(a.shims) {
		s := a.shims[pid]
		if a.assigned[pid] || a.runtime.err != nil || s.namespace != kubernetesNamespace || s.id == "" {
			continue
		}
		a.orphan(t, pid, s.id, "a shim of a pod that the container runtime does not list")
	}
	for _, pid := range sortedPIDs(a.processes) {
		p := a.processes[pid]
		if a.assigned[pid] || a.heads[pid] || !isBelow(p.GetImage(), a.folders) {
			continue
		}
		if _, ok := a.parent(p); !ok {
			a.orphan(t, pid, "", "a program of the container runtime whose parent has exited")
		}
	}
}

// orphan lists a process and its descendants as orphans, or as unsettled if the process is
// younger than settleTime or was not in the earlier sample.
func (a *assignment) orphan(t *Table, pid uint32, sandbox, why string) {
	p := a.processes[pid]
	to := &t.Orphans
	if _, stood := a.before.has(p); !stood || a.taken.Sub(p.GetStarted().AsTime()) < settleTime {
		to = &t.Unsettled
	}
	for i, process := range a.list(a.assign(pid)) {
		o := Orphan{Process: process, Sandbox: sandbox, Why: why}
		if i > 0 {
			o.Why = fmt.Sprintf("started by %d, which has no owner", process.ParentPID)
		}
		*to = append(*to, o)
	}
}

func (a *assignment) others() []Process {
	others := []uint32{}
	for _, pid := range sortedPIDs(a.processes) {
		if !a.assigned[pid] {
			others = append(others, pid)
		}
	}
	return a.list(others)
}

func sortedPIDs[V any](of map[uint32]V) []uint32 {
	pids := make([]uint32, 0, len(of))
	for pid := range of {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}
