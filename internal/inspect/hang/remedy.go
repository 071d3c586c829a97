package hang

import "slices"

// remedyOf returns the remedy for a root of a node's waits, with the least harm first.
func remedyOf(n *Node, root Wait) string {
	switch root.On {
	case OnHCS:
		if root.Minutes > shimMinutes {
			return overdue(n, root)
		}
		if n.answers(probeHCS) && root.Process == Shim {
			return "wait: a shim gives up after 4 minutes at most. HCS answers other questions, so only this pod is concerned: " +
				"`swdt hcs kill` ends its compute system. A restart of vmcompute ends all containers of the node"
		}
		return "wait 4 minutes, after which shims give up. If HCS still does not answer, drain the node and restart it: a restart of " +
			"vmcompute ends all containers of the node as well"
	case OnHNS:
		return "wait: neither kube-proxy nor CNI plugins give up by themselves. `swdt restart kube-proxy` breaks no connection, and " +
			"helps only if HNS answers. A restart of the service hns loses its policies; kube-proxy must restart after it"
	case OnSCM:
		return "wait: Windows' service manager waits 30 seconds for a service that does not answer it. If it still does not answer, " +
			"drain the node and restart it"
	case OnStorage, OnSnapshotter:
		return "wait: layers of large images take minutes. Then look for another program that holds the files, such as an antivirus " +
			"program without exclusions; `swdt doctor` checks these. At last drain the node and restart it"
	case OnPipe:
		return "end this shim with `swdt hcs kill`: its pod ends, and other pods go on"
	case OnRegistry:
		return "wait, or look at the registry and at the node's way to it: `swdt doctor`"
	case OnCNI:
		return "look at the log of the pod network and at HNS: `swdt hns endpoints`. If HNS answers, end the plugin's process, " +
			"which `swdt ps` shows below containerd: containerd then reports a failed pod, and kubelet tries again"
	case OnLock:
		return "`swdt restart " + serviceOf(root.Process) + "`: pods go on meanwhile"
	case OnShim:
		if len(root.Known) > 0 && slices.ContainsFunc(root.Known, func(k Known) bool { return k.ID == "containerd/ttrpc#168" }) {
			return "`swdt restart containerd`: shims and pods go on meanwhile. The fix needs a newer containerd"
		}
		return "look at the shim's own row. If it has none, end the shim with `swdt hcs kill`: its pod ends, and other pods go on"
	case OnExit:
		return "wait for the grace period of the pod; then `swdt hcs kill` ends the container"
	case OnContainerd:
		return "`swdt restart containerd`: shims and pods go on meanwhile"
	case OnLeak:
		return "update the shim. Until then, a restart of the pod ends its shim with the goroutines"
	}
	return ""
}

// shimMinutes is the time after which a shim gives up a call of HCS: microsoft/hcsshim, internal/timeout/timeout.go.
const shimMinutes = 4

// overdue returns the remedy for a call of HCS that lasts longer than its limit.
func overdue(n *Node, root Wait) string {
	const text = "the limit of 4 minutes, after which shims give up, is overdue. "
	if n.answers(probeHCS) && root.Process == Shim {
		return text + "HCS answers other questions, so only this pod is concerned: `swdt hcs kill` ends its compute system. If that does " +
			"not return, drain the node and restart it"
	}
	return text + "Drain the node and restart it: a restart of vmcompute ends all containers of the node as well"
}

// serviceOf returns the service to restart for a program.
func serviceOf(k Kind) string {
	if k == Kubelet || k == KubeProxy {
		return string(k)
	}
	return string(Containerd)
}

// answers reports whether a probe got an answer.
func (n *Node) answers(name string) bool {
	return slices.ContainsFunc(n.Probes, func(p Probe) bool { return p.Name == name && p.Answers })
}
