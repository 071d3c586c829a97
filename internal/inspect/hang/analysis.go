package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// begunCall is the age of a call from which a goroutine that serves it counts as blocked, although it has been in its
// present state for less than a minute, the unit of a dump.
const begunCall = 20 * time.Second

// Analyse sets the waits, the verdict and the remedy of a node from the rest of its dump.
func (n *Node) Analyse() {
	n.Waits = []Wait{}
	r, known := newRecogniser(), defects()
	for i := range n.Processes {
		p := &n.Processes[i]
		for _, w := range n.waitsOf(p, r, known) {
			n.add(w)
		}
		if p.Silent {
			n.add(Wait{Process: p.Kind, PID: p.PID, ID: p.ID, Pods: podsOf(p.Pod), PodsInferred: p.PodInferred, On: OnShim, Count: 1,
				Operation: "the " + string(p.Kind) + " accepted a question and does not answer", Known: []Known{}})
		}
	}
	for _, probe := range n.Probes {
		if on, ok := probedTarget(probe.Name); ok && !probe.Answers {
			n.add(Wait{Process: Kind(probe.Name), On: on, Count: 1, Pods: []string{}, Known: []Known{},
				Operation: fmt.Sprintf("%s does not answer within %.0f s", probe.Name, probe.Seconds)})
		}
	}
	for i := range n.Waits {
		n.namePods(&n.Waits[i])
	}
	slices.SortStableFunc(n.Waits, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(slices.Index(targets(), a.On), slices.Index(targets(), b.On)), cmp.Compare(b.Minutes, a.Minutes),
			cmp.Compare(len(b.Known), len(a.Known)), cmp.Compare(a.Process.depth(), b.Process.depth()), cmp.Compare(a.Process, b.Process), cmp.Compare(a.PID, b.PID), strings.Compare(a.Operation, b.Operation),
			strings.Compare(a.Method, b.Method))
	})
	n.Unread = n.unread()
	n.Verdict, n.Remedy = n.judge()
}

// depth is the place of a program in the chain kubelet, containerd, shim: the lowest is the root.
func (k Kind) depth() int {
	switch k {
	case Shim:
		return 0
	case Containerd:
		return 1
	case Kubelet:
		return 3
	}
	return 2
}

// waitsOf returns the waits of one process.
func (n *Node) waitsOf(p *Process, r recogniser, known []defect) (waits []Wait) {
	for _, g := range p.Groups {
		if leak, ok := leakOf(p, g); ok {
			leak.Known = n.knownFor(known, p, leak, g)
			waits = append(waits, leak)
			continue
		}
		op, method, ok := r.operation(p.Kind, g)
		if !ok || g.Minutes < op.after && !n.isBegun(method, op.after) {
			continue
		}
		w := Wait{Process: p.Kind, PID: p.PID, ID: p.ID, Pods: podsOf(p.Pod), PodsInferred: p.PodInferred, Operation: op.text, On: op.on, Method: method,
			Minutes: g.Minutes, Count: g.Count, Function: op.function}
		w.Known = n.knownFor(known, p, w, g)
		waits = append(waits, w)
	}
	return waits
}

// isBegun reports whether a call of a method has been under way long enough to count as blocked.
func (n *Node) isBegun(method string, after int) bool {
	return method != "" && after <= 1 && slow(method) <= 5 && slices.ContainsFunc(n.Calls, func(c Call) bool {
		return c.Method == method && c.Seconds >= begunCall.Seconds()
	})
}

// add adds a wait, or joins it with the one of the same operation: a call of HCS has one goroutine that makes it and one
// that waits for it, with different functions.
func (n *Node) add(w Wait) {
	i := slices.IndexFunc(n.Waits, func(o Wait) bool {
		return o.Process == w.Process && o.PID == w.PID && o.Operation == w.Operation && o.On == w.On &&
			(o.Method == w.Method || o.Method == "" || w.Method == "")
	})
	if i < 0 {
		n.Waits = append(n.Waits, w)
		return
	}
	o := &n.Waits[i]
	o.Method, o.Minutes, o.Count = cmp.Or(o.Method, w.Method), max(o.Minutes, w.Minutes), max(o.Count, w.Count)
	for _, k := range w.Known {
		if !slices.Contains(o.Known, k) {
			o.Known = append(o.Known, k)
		}
	}
}

// namePods adds the pods of the calls that a wait of containerd or kubelet may serve.
func (n *Node) namePods(w *Wait) {
	if w.Process != Containerd && w.Process != Kubelet {
		return
	}
	for _, c := range n.Calls {
		if c.Method == w.Method && c.Pod != "" && !slices.Contains(w.Pods, c.Pod) {
			w.Pods, w.PodsInferred = append(w.Pods, c.Pod), true
		}
	}
}

func podsOf(pod string) []string {
	if pod == "" {
		return []string{}
	}
	return []string{pod}
}

// probedTarget returns the target of a probe.
func probedTarget(name string) (Target, bool) {
	switch name {
	case probeHCS:
		return OnHCS, true
	case probeHNS:
		return OnHNS, true
	case probeSCM:
		return OnSCM, true
	case probeCRI:
		return OnContainerd, true
	}
	return "", false
}

// unread returns the programs whose goroutines are missing in whole or in part. A file that has the goroutines of one program
// is no dump of a node: it lacks no other program.
func (n *Node) unread() []string {
	missing, found := []string{}, false
	for _, p := range n.Processes {
		found = found || p.Kind == Containerd || p.Source == byFile
		if (p.Kind == Containerd || p.Kind == Shim) && (p.Goroutines == 0 || p.Cut) {
			missing = append(missing, nameOf(p.Kind, p.PID))
		}
	}
	if !found {
		missing = append(missing, string(Containerd))
	}
	return missing
}

// The verdicts of a node on which nothing is blocked: that of a node that was read as a whole, and the beginning of the other.
const (
	nothingWaits   = "nothing waits"
	nothingWaitsIn = "nothing waits in what was read"
)

// judge returns the sentence and the remedy of a node, from its waits in their order.
func (n *Node) judge() (verdict, remedy string) {
	read := slices.ContainsFunc(n.Processes, func(p Process) bool { return p.Goroutines > 0 })
	blocked := slices.DeleteFunc(slices.Clone(n.Waits), func(w Wait) bool { return w.On == OnLeak })
	switch {
	case len(blocked) == 0 && len(n.Waits) > 0:
		return n.nothing() + "; " + fmt.Sprintf("%d %s", n.Waits[0].Count, n.Waits[0].Operation), remedyOf(n, n.Waits[0])
	case len(blocked) == 0 && len(n.Calls) > 0:
		c := n.Calls[0]
		return strings.TrimSpace(fmt.Sprintf("%s has not returned for %s %s", c.Method, age(c.Seconds), inPods(podsOf(c.Pod)))), ""
	case len(blocked) == 0 && !read:
		return "unknown: no program could be read", ""
	case len(blocked) == 0:
		return n.nothing(), ""
	}
	root := blocked[0]
	verdict = root.Operation
	if root.Minutes > 0 {
		verdict += fmt.Sprintf(" for %s or longer", finding.Several(root.Minutes, "minute"))
	}
	if pods := inPods(root.Pods); pods != "" {
		if root.PodsInferred {
			verdict += " perhaps"
		}
		verdict += " " + pods
	}
	if others := waiters(blocked); others != "" {
		verdict += "; " + others
	}
	return verdict, remedyOf(n, root)
}

// nothing returns the sentence that nothing is blocked, as far as that is known.
func (n *Node) nothing() string {
	if len(n.Unread) == 0 {
		return nothingWaits
	}
	const most = 5
	named := n.Unread[:min(len(n.Unread), most)]
	text := nothingWaitsIn + "; not read: " + strings.Join(named, ", ")
	if more := len(n.Unread) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// waiters returns the programs that wait for the root, which is the first.
func waiters(waits []Wait) string {
	var names []string
	for _, w := range waits {
		if w.Process != "" && !slices.Contains(names, string(w.Process)) && w.Process != Kind(probeHCS) && w.Process != Kind(probeHNS) && w.Process != Kind(probeSCM) {
			names = append(names, string(w.Process))
		}
	}
	if len(waits) < 2 || len(names) == 0 {
		return ""
	}
	verb := "waits"
	if len(names) > 1 {
		verb = "wait"
	}
	return strings.Join(names, ", ") + " " + verb
}

func inPods(pods []string) string {
	switch len(pods) {
	case 0:
		return ""
	case 1:
		return "in pod " + pods[0]
	}
	return "in one of the pods " + strings.Join(pods, ", ")
}
