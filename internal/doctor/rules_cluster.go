package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/preflight"
	"github.com/swdt-dev/swdt/internal/remedy"
)

func nodeObjectRules() []Rule {
	object := []string{"nodeObject"}
	return []Rule{
		{
			ID: "api-server", Title: "the API server answers", Severity: Error, Needs: []string{"apiServer"},
			Means:  "Nothing of the cluster is known here: what the other rules find is the machine's part alone.",
			Remedy: "see that the kubeconfig is the cluster's, and that it runs: kubectl get --raw /readyz?verbose", look: lookAtAPIServer,
			Link: "https://kubernetes.io/docs/tasks/debug/debug-cluster/",
		},
		{
			ID: "node-registered", Title: "the cluster has the node", Severity: Error, Needs: object, Link: docsJoin,
			Means:  "No pod comes to a node that the cluster does not know.",
			Remedy: "see what kubelet says: `swdt logs kubelet --grep register`; or join it: `swdt join`", look: lookAtRegistered,
		},
		{
			ID: "node-ready", Title: "the node is Ready", Severity: Error, Needs: object, Link: docsDebug,
			Means:  "The scheduler gives it no pods, and after five minutes those that it has are moved away.",
			Remedy: "the other findings are likely why; else `swdt logs kubelet --tail 100`", look: lookAtReady,
		},
		{
			ID: "node-pressure", Title: "the node is under no pressure", Severity: Error, Needs: object,
			Means:  "kubelet evicts pods and takes no new ones until the pressure is gone.",
			Remedy: "make room: `swdt cri images`, `swdt cri stats` and `swdt doctor --rule disk-space,memory` show for what", look: lookAtPressure,
			Link: "https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/",
		},
		{
			ID: "node-cordoned", Title: "the node takes pods", Severity: Info, Needs: object,
			Means:  "Somebody has cordoned it: no new pod comes here, though nothing is wrong.",
			Remedy: "kubectl uncordon NODE, when it may", look: lookAtCordon,
			Link: "https://kubernetes.io/docs/concepts/architecture/nodes/#manual-node-administration",
		},
		{
			ID: "node-versions", Title: "the Node object says what runs", Severity: Warning, Needs: []string{"machine", "programs", "nodeObject"}, Link: docsPush,
			Means:  "kubelet reports when it starts: what differs was replaced since, or another machine reports under this name.",
			Remedy: "restart kubelet: `swdt exec -- net stop kubelet`, then `swdt exec -- net start kubelet`", look: lookAtReported,
		},
		asBeforeJoin(Rule{
			ID: "version-skew", Title: "kubelet is not newer than the API server, nor too old", Severity: Error, Needs: []string{"programs", "apiServer"}, Link: docsSkew,
			Means:  "A kubelet may be up to three minor versions behind the API server, and none ahead: fields and calls that one of the two does not know are lost or refused.",
			Remedy: "push another kubelet (`swdt kubernetes --only kubelet`), or upgrade the control plane",
		}, func(f *Facts) preflight.Seen {
			return preflight.Seen{Kubelet: (*f.Programs.Value)["kubelet"].Version, APIServer: f.Server.Value.Version}
		}),
	}
}

func lookAtAPIServer(f *Facts) []Finding {
	if s := f.Server.Value; s.Error != "" {
		return one(found(s.Error, "the API server %s does not answer", s.URL))
	}
	return nil
}

func lookAtRegistered(f *Facts) []Finding {
	if f.Object.Value.Exists {
		return nil
	}
	return one(found("kubectl get node "+f.Object.Value.Name+" finds none", "the cluster has no Node %s", f.Object.Value.Name))
}

func lookAtReady(f *Facts) []Finding {
	n := f.Object.Value
	if !n.Exists || n.Ready {
		return nil
	}
	seen := n.State()
	if !n.LeaseRenewed.IsZero() {
		seen += "; its lease was last renewed " + n.LeaseRenewed.UTC().Format(time.RFC3339)
	}
	return one(found(seen, "Node %s is not Ready", n.Name))
}

func lookAtPressure(f *Facts) (all []Finding) {
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure"} {
		if c, ok := f.Object.Value.Condition(kind); ok && c.Status == "True" {
			all = append(all, found(strings.Trim(c.Reason+": "+c.Message, ": "), "Node %s has %s", f.Object.Value.Name, kind))
		}
	}
	return all
}

func lookAtCordon(f *Facts) []Finding {
	if !f.Object.Value.Cordoned {
		return nil
	}
	return one(found("spec.unschedulable is true", "Node %s is cordoned", f.Object.Value.Name).remedied("kubectl uncordon %s, when it may", f.Object.Value.Name))
}

func lookAtReported(f *Facts) (all []Finding) {
	n := f.Object.Value
	if !n.Exists {
		return nil
	}
	programs := *f.Programs.Value
	if is := programs["kubelet"].Version; is != "" && n.KubeletVersion != "" && !sameVersion(is, n.KubeletVersion) {
		all = append(all, found("Node: "+n.KubeletVersion+", "+programs["kubelet"].Path+": "+is, "the Node object reports another kubelet than is there"))
	}
	if build := f.Machine.Value.Build; n.KernelVersion != "" && build != "" && !strings.HasSuffix(n.KernelVersion, build) {
		all = append(all, found("Node: "+n.KernelVersion+", the machine: "+build, "the Node object reports another build of Windows than is there"))
	}
	return all
}

func sameVersion(a, b string) bool {
	return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v")
}

func podRules() []Rule {
	pods := []string{"pods"}
	return []Rule{
		{
			ID: "pods-waiting", Title: "no pod waits for ever", Severity: Warning, Needs: pods, Link: docsPods,
			Means:  "Pods that this node was given do not get to run.",
			Remedy: "kubectl describe pod says what it waits for; `swdt logs kubelet --grep NAME` what the node does about it", look: lookAtWaiting,
		},
		{
			ID: "pods-restarting", Title: "no pod crashes again and again", Severity: Warning, Needs: pods, Link: docsPods,
			Means:  "A container ends soon after it has started; each time kubelet waits longer.",
			Remedy: "kubectl logs --previous says what it said last", look: lookAtRestarting,
		},
		{
			ID: "pods-terminating", Title: "no pod is stuck at its end", Severity: Warning, Needs: pods, Link: docsPods,
			Means:  "A pod was deleted and its containers do not end: its name, its volumes and its place stay taken.",
			Remedy: "`swdt cri pods` shows whether the runtime still has it; `swdt logs containerd` what it hangs at", look: lookAtTerminating,
		},
		{
			ID: "pod-os", Title: "pods here are for Windows", Severity: Warning, Needs: pods,
			Means:  "A pod for Linux was given to this node: nothing but a node selector or a taint keeps it away. kubelet refuses it, or pulls for ever.",
			Remedy: "give pods a nodeSelector kubernetes.io/os, and this node a taint: kubectl taint node NODE os=windows:NoSchedule", look: lookAtPodOS,
			Link: "https://kubernetes.io/docs/concepts/windows/user-guide/#ensuring-os-specific-workloads-land-on-the-appropriate-container-host",
		},
	}
}

// overdue is how long a pod may wait for its images and volumes.
const overdue = 5 * time.Minute

func lookAtWaiting(f *Facts) (all []Finding) {
	for _, p := range *f.Pods.Value {
		age := f.Taken.Sub(p.Created)
		if p.Phase != "Pending" || age < overdue || !p.Deleted.IsZero() {
			continue
		}
		why := cmp.Or(strings.Join(p.Waiting, "; "), p.Reason, "no container of it has a state yet")
		all = append(all, found(why, "pod %s has been Pending for %s", p, age.Round(time.Minute)).
			remedied("kubectl describe pod -n %s %s; %s", p.Namespace, p.Name, remedy.Command("logs", "kubelet", "--grep", p.Name)))
	}
	return all
}

func lookAtRestarting(f *Facts) (all []Finding) {
	for _, p := range *f.Pods.Value {
		looping := slices.ContainsFunc(p.Waiting, func(why string) bool { return strings.Contains(why, "CrashLoopBackOff") })
		if looping {
			all = append(all, found(strings.Join(p.Waiting, "; "), "a container of pod %s has ended %s", p, times(p.Restarts)).
				remedied("kubectl logs --previous -n %s %s", p.Namespace, p.Name))
		}
	}
	return all
}

func lookAtTerminating(f *Facts) (all []Finding) {
	for _, p := range *f.Pods.Value {
		if late := f.Taken.Sub(p.Deleted); !p.Deleted.IsZero() && late > overdue {
			all = append(all, found(fmt.Sprintf("its time to end was over at %s", p.Deleted.Format(time.RFC3339)), "pod %s should have ended %s ago", p, late.Round(time.Minute)))
		}
	}
	return all
}

func lookAtPodOS(f *Facts) (all []Finding) {
	for _, p := range *f.Pods.Value {
		if p.Reason == "PodOSNotSupported" || p.OS != "" && p.OS != "windows" {
			all = append(all, found(strings.Trim("its system is "+p.OS+"; "+p.Reason, "; "), "pod %s is not for Windows", p))
		}
	}
	return all
}

// podNetworkRules look at what has to be in the cluster for pods on Windows to be
// reached.
func podNetworkRules() []Rule {
	network := []string{"podNetwork"}
	rule := func(id, title, means, link string) Rule {
		return asBeforeJoin(Rule{ID: id, Title: title, Severity: Warning, Needs: network, Means: means, Link: link}, seenNetwork)
	}
	return []Rule{
		rule("calico", "Calico is set up for Windows", "Calico's defaults are Linux's: with BGP, with borrowed addresses or without HNS, pods on Windows get no network, or one that nobody reaches.", docsCalico),
		rule("flannel", "flannel is set up for Windows", "Windows' VXLAN has a fixed port, and numbers from 4096 on: with flannel's defaults pods here are not reached.", docsFlannel),
		rule("antrea", "Antrea has its part for Windows", "Without its agent here, pods get no network.", docsAntrea),
		missedByPods(rule("kube-proxy", "kube-proxy runs on Windows nodes", "Nobody makes load balancers for Services: pods here do not reach them.", docsDebug)),
	}
}

// missedByPods: a service of that name does as well as a DaemonSet, and as long as
// no pod here is in the pod network nobody misses it.
func missedByPods(r Rule) Rule {
	look := r.look
	r.look = func(f *Facts) []Finding {
		if f.service(r.ID).Name != "" {
			return nil
		}
		all := look(f)
		if f.Pods.Value != nil && !slices.ContainsFunc(*f.Pods.Value, func(p Pod) bool { return !p.HostNetwork }) {
			for i := range all {
				all[i] = all[i].as(Info)
			}
		}
		return all
	}
	return r
}
