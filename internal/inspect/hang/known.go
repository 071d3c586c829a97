package hang

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/format/goroutines"
)

// defect is a published defect, and the form that it has in a dump.
type defect struct {
	id, text string
	fixed    string // the versions with the fix, or why there are none
	// of is the program whose version decides, and since are its first versions with the fix, the lowest first, one for
	// each line of releases. Without them, no version excludes the defect.
	of    Kind
	since []string
	// form reports whether a wait, of one group of goroutines of a process, has the defect's form.
	form func(p *Process, w Wait, g goroutines.Group) bool
}

// defects returns all published defects that a dump can show. The versions are those of the projects' releases. The result is
// for one analysis: it remembers the processes that it has seen.
func defects() []defect { return defectsBy(waitsBehindSend) }

// defectsBy is defects with the function that recognises waits behind a request.
func defectsBy(waitsBehindSend func(goroutines.Group) bool) []defect {
	hasBehindSend := anyGroup(waitsBehindSend)
	return []defect{
		{id: "kubernetes/kubernetes#75299", text: "HCS does not return the properties of a compute system; the runtime waits for it",
			fixed: "none is known: Windows Server 2019, closed without a fix",
			form: func(_ *Process, w Wait, _ goroutines.Group) bool {
				return on(w, OnHCS, "get compute system properties")
			}},
		{id: "kubernetes/kubernetes#104111", text: "parallel questions for the statistics of containers take minutes each",
			fixed: "none is known",
			form: func(p *Process, w Wait, _ goroutines.Group) bool {
				return p.Kind == Shim && on(w, OnHCS, "get compute system properties")
			}},
		{id: "kubernetes/kubernetes#107561", text: "the shutdown of a compute system times out and leaks it; its name stays reserved",
			fixed: "perhaps hcsshim 0.9.5 and 0.10.0; the thread names no version",
			form: func(p *Process, w Wait, _ goroutines.Group) bool {
				return p.Kind == Shim && on(w, OnHCS, "shutdown compute system")
			}},
		{id: "microsoft/Windows-Containers#469", text: "processes of a container do not end, since the kernel waits for them",
			fixed: "none is known: drain the node and replace it",
			form:  func(_ *Process, w Wait, _ goroutines.Group) bool { return on(w, OnHCS, "terminate compute system") }},
		{id: "containerd/ttrpc#168", text: "the client of a shim's pipe waits for its own lock while the pipe is full",
			fixed: "ttrpc 1.2.4, in containerd 1.7.17 and 2.0.0", of: Containerd, since: []string{"1.7.17", "2.0.0"},
			form: func(p *Process, w Wait, g goroutines.Group) bool {
				return p.Kind == Containerd && waitsBehindSend(g)
			}},
		{id: "containerd/ttrpc#174", text: "a request is not written to a shim's pipe, since the shim does not read it",
			fixed: "none is known",
			form: func(p *Process, w Wait, g goroutines.Group) bool {
				return p.Kind == Containerd && !isLock(g) && has(g, "ttrpc.(*channel).send") && has(g, "ttrpc.(*Client).createStream") &&
					!hasBehindSend(p)
			}},
		{id: "containerd/containerd#10583", text: "an update of a container's resources holds the lock of its status; all lists of containers wait",
			fixed: "none is known",
			form: func(p *Process, _ Wait, g goroutines.Group) bool {
				return p.Kind == Containerd && (has(g, "(*statusStorage).Get") && isLock(g) || has(g, "(*statusStorage).UpdateSync"))
			}},
		{id: "containerd/containerd@fd29ff107", text: "containerd waits at its start for a shim that accepts connections and does not answer",
			fixed: "after containerd 2.4.0-beta.0", form: func(p *Process, _ Wait, g goroutines.Group) bool {
				return p.Kind == Containerd && has(g, ".loadShim")
			}},
		{id: "microsoft/hcsshim#1237", text: "the shim dials the pipe of a container's output again after its reader has gone",
			fixed: "none is known",
			form:  func(_ *Process, _ Wait, g goroutines.Group) bool { return has(g, "(*nPipeRetryWriter)") }},
		{id: "microsoft/go-winio#357", text: "the close of a pipe waits for a connection that never comes",
			fixed: "none is known", form: func(_ *Process, _ Wait, g goroutines.Group) bool {
				return has(g, "(*win32PipeListener).Close")
			}},
		{id: "microsoft/hcsshim#1574", text: "each exec, such as a probe, leaves a goroutine in the shim",
			fixed: "hcsshim 0.9.6 and 0.10.0, in containerd 1.6.13 and 1.7.0", of: Containerd, since: []string{"1.6.13", "1.7.0"},
			form: func(_ *Process, w Wait, _ goroutines.Group) bool { return w.On == OnLeak }},
		{id: "kubernetes/kubernetes#109162", text: "kube-proxy asks HNS for the same objects again and again; one synchronization takes hours",
			fixed: "Kubernetes 1.22.12, 1.23.9 and 1.25.0", of: KubeProxy, since: []string{"1.22.12", "1.23.9", "1.25.0"},
			form: func(p *Process, w Wait, g goroutines.Group) bool {
				return p.Kind == KubeProxy && w.On == OnHNS && has(g, "(*Proxier).syncProxyRules")
			}},
	}
}

// anyGroup returns a function that reports whether a group of a process is such a one. It looks at each process once.
func anyGroup(is func(goroutines.Group) bool) func(*Process) bool {
	seen := map[*Process]bool{}
	return func(p *Process) bool {
		found, ok := seen[p]
		if !ok {
			found = slices.ContainsFunc(p.Groups, is)
			seen[p] = found
		}
		return found
	}
}

// waitsBehindSend reports whether goroutines wait for the lock of a shim's client to begin a request.
func waitsBehindSend(g goroutines.Group) bool {
	return isLock(g) && has(g, "ttrpc.(*Client).createStream")
}

// on reports whether a wait is for one call of a target.
func on(w Wait, target Target, call string) bool {
	return w.On == target && strings.HasSuffix(w.Operation, ": "+call)
}

// has reports whether a function of the goroutines contains a text.
func has(g goroutines.Group, text string) bool {
	return slices.ContainsFunc(g.Frames, func(f string) bool { return strings.Contains(f, text) })
}

// mostWaitingForExit is the number of goroutines for the end of one container from which they are a leak.
const mostWaitingForExit = 50

// leakOf returns the wait that stands for goroutines that pile up.
func leakOf(p *Process, g goroutines.Group) (Wait, bool) {
	if p.Kind != Shim || g.Count < mostWaitingForExit || !has(g, ".waitForContainerExit") {
		return Wait{}, false
	}
	return Wait{Process: p.Kind, PID: p.PID, ID: p.ID, Pods: podsOf(p.Pod), On: OnLeak, Minutes: g.Minutes, Count: g.Count,
		PodsInferred: p.PodInferred, Operation: "goroutines of one shim wait for the end of its container", Function: g.Frames[0]}, true
}

// knownFor returns the published defects that have the form of a wait.
func (n *Node) knownFor(all []defect, p *Process, w Wait, g goroutines.Group) []Known {
	found := []Known{}
	for _, d := range all {
		if d.form(p, w, g) {
			found = append(found, Known{ID: d.id, URL: d.url(), Text: d.text, Fixed: d.fixed, Absent: d.isFixedIn(n.versionOf(d.of, p))})
		}
	}
	return found
}

// url returns the page of a defect.
func (d defect) url() string {
	if repository, commit, ok := strings.Cut(d.id, "@"); ok {
		return "https://github.com/" + repository + "/commit/" + commit
	}
	return "https://github.com/" + strings.Replace(d.id, "#", "/issues/", 1)
}

// versionOf returns the version that decides about a defect: that of the process, or that of the node's containerd.
func (n *Node) versionOf(kind Kind, p *Process) string {
	if kind == p.Kind {
		return p.Version
	}
	for _, other := range n.Processes {
		if other.Kind == kind {
			return other.Version
		}
	}
	return ""
}

// isFixedIn reports whether a version has the fix of a defect; false if that is unknown.
func (d defect) isFixedIn(text string) bool {
	v, err := version.ParseGeneric(text)
	if err != nil || len(d.since) == 0 {
		return false
	}
	for _, first := range d.since {
		if fix := version.MustParseGeneric(first); fix.Major() == v.Major() && fix.Minor() == v.Minor() {
			return v.AtLeast(fix)
		}
	}
	return v.AtLeast(version.MustParseGeneric(d.since[len(d.since)-1]))
}
