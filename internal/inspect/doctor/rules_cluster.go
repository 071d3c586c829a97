package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

func nodeObjectRules() []Rule {
	object := []string{"nodeObject"}
	return []Rule{
		{
			ID: "api-server", Title: "the API server answers", Severity: finding.Error, Needs: []string{"apiServer"},
			Means: "Facts of the cluster are unknown: the other rules check only the machine.",
			Remedy: "check that the kubeconfig is the cluster's, and that its API server runs: " +
				"`kubectl get --raw '/readyz?verbose'`", look: lookAtAPIServer,
			Link: "https://kubernetes.io/docs/tasks/debug/debug-cluster/",
		},
		{
			ID: "node-registered", Title: "the cluster has a Node for this machine", Severity: finding.Error,
			Needs: object, Link: docsJoin,
			Means:  "The cluster schedules no pods on this machine.",
			Remedy: "read kubelet's log: `swdt logs kubelet --grep register`; or join the machine: `swdt join`",
			look:   lookAtRegistered,
		},
		{
			ID: "node-ready", Title: "the node is Ready", Severity: finding.Error, Needs: object, Link: docsDebug,
			Means:  "The scheduler places no pods on the node, and after five minutes, the node's pods are moved away.",
			Remedy: "the other findings are the likely cause; if there are none, `swdt logs kubelet --tail 100`",
			look:   lookAtReady,
		},
		{
			ID: "node-address", Title: "the Node has the machine's address", Severity: finding.Error, Needs: object,
			Link: docsJoin,
			Means: "The API server does not reach kubelet: `kubectl logs`, `exec` and `port-forward` fail. Pods that ask " +
				"for their host's address do not start, and tunnels of the pod network lead nowhere.",
			Remedy: "`swdt join` gives kubelet the address from which the machine reaches the API server; " +
				"spec.kubernetes.join.nodeIP chooses another one",
			look: lookAtAddress,
		},
		{
			ID: "node-pressure", Title: "the node is under no pressure", Severity: finding.Error, Needs: object,
			Means: "kubelet evicts pods and accepts no new ones until the pressure ends.",
			Remedy: "free space or memory: `swdt cri images`, `swdt cri stats` and " +
				"`swdt doctor --rule disk-space,memory` show what is used", look: lookAtPressure,
			Link: "https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/",
		},
		{
			ID: "node-cordoned", Title: "the node is not cordoned", Severity: finding.Info, Needs: object,
			Means:  "No new pods are scheduled on the node, although nothing is wrong with it.",
			Remedy: "`kubectl uncordon NODE`, when it may run pods again", look: lookAtCordon,
			Link: "https://kubernetes.io/docs/concepts/architecture/nodes/#manual-node-administration",
		},
		{
			ID: "node-versions", Title: "the Node object reports the versions that run", Severity: finding.Warning,
			Needs: []string{"machine", "programs", "nodeObject"}, Link: docsPush,
			Means: "kubelet reports its version and Windows' build when it starts. If they differ from the machine's, " +
				"a program was replaced since, or another machine reports under this name.",
			Remedy: "restart kubelet: `swdt exec -- net stop kubelet`, then `swdt exec -- net start kubelet`",
			look:   lookAtReported,
		},
		fromPreflight(Rule{
			ID: "version-skew", Title: "kubelet is not newer than the API server, nor too old",
			Severity: finding.Error, Needs: []string{"programs", "apiServer"}, Link: docsSkew,
			Means: "A kubelet may be up to three minor versions older than the API server, and never newer: unknown " +
				"fields are lost, and unknown calls fail.",
			Remedy: "push another kubelet (`swdt push --only kubelet`), or upgrade the control plane",
		}, func(f *Facts) preflight.Gathered {
			return preflight.Gathered{Kubelet: (*f.Programs.Value)["kubelet"].Version,
				APIServer: f.Server.Value.Version}
		}),
	}
}

func lookAtAPIServer(f *Facts) []finding.Finding {
	switch s := f.Server.Value; {
	case s.Unasked:
		return one(finding.New(s.Error, "the kubeconfig's credential plugin gives no credentials to ask the API server").
			Remedied("install the plugin, or log in again with it"))
	case s.Error != "":
		return one(finding.New(s.Error, "the API server %s does not answer", s.URL))
	}
	return nil
}

func lookAtRegistered(f *Facts) []finding.Finding {
	if f.Object.Value.Exists {
		return nil
	}
	return one(finding.New(remedy.KubectlCommand("get", "node", f.Object.Value.Name)+" finds nothing",
		"the cluster has no Node %s", f.Object.Value.Name))
}

func lookAtReady(f *Facts) []finding.Finding {
	n := f.Object.Value
	if !n.Exists || n.Ready {
		return nil
	}
	seen := n.State()
	if !n.LeaseRenewed.IsZero() {
		seen += "; its lease was last renewed " + n.LeaseRenewed.UTC().Format(time.RFC3339)
	}
	return one(finding.New(seen, "Node %s is not Ready", n.Name))
}

// lookAtAddress finds a Node without an address, and one whose address is not the one from which the machine reaches
// the API server: that of another adapter, or one that the machine had before.
func lookAtAddress(f *Facts) []finding.Finding {
	n := f.Object.Value
	if !n.Exists {
		return nil
	}
	if n.InternalIP() == "" {
		return one(finding.New("its status has no address of the type InternalIP", "Node %s has no address", n.Name))
	}
	if f.Reached.Value == nil {
		return nil
	}
	for _, r := range *f.Reached.Value {
		has := func(a corev1.NodeAddress) bool { return a.Address == r.Source }
		if preflight.UsableAddress(r.Source) && !slices.ContainsFunc(n.Addresses, has) {
			return one(finding.New("the machine reaches "+r.Address+" from "+r.Source, "Node %s has the address %s, and not "+
				"the one from which its machine reaches the API server", n.Name, n.InternalIP()).As(finding.Warning))
		}
	}
	return nil
}

func lookAtPressure(f *Facts) (all []finding.Finding) {
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure"} {
		if c, ok := f.Object.Value.Condition(kind); ok && c.Status == "True" {
			all = append(all, finding.New(strings.Trim(c.Reason+": "+c.Message, ": "), "Node %s has %s",
				f.Object.Value.Name, kind))
		}
	}
	return all
}

func lookAtCordon(f *Facts) []finding.Finding {
	if !f.Object.Value.Cordoned {
		return nil
	}
	return one(finding.New("spec.unschedulable is true", "Node %s is cordoned",
		f.Object.Value.Name).Remedied("%s, when it may run pods again",
		remedy.KubectlCommand("uncordon", f.Object.Value.Name)))
}

func lookAtReported(f *Facts) (all []finding.Finding) {
	n := f.Object.Value
	if !n.Exists {
		return nil
	}
	programs := *f.Programs.Value
	if is := programs["kubelet"].Version; is != "" && n.KubeletVersion != "" && !sameVersion(is, n.KubeletVersion) {
		all = append(all, finding.New("Node: "+n.KubeletVersion+", "+programs["kubelet"].Path+": "+is,
			"the Node object reports another kubelet than the one on the machine"))
	}
	if build := f.Machine.Value.Build; n.KernelVersion != "" && build != "" &&
		!strings.HasSuffix(n.KernelVersion, build) {
		all = append(all, finding.New("Node: "+n.KernelVersion+", the machine: "+build,
			"the Node object reports another build of Windows than the machine's"))
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
			ID: "pods-waiting", Title: "no pod stays Pending", Severity: finding.Warning, Needs: pods, Link: docsPods,
			Means: "Pods that were scheduled on this node do not start.",
			Remedy: "`kubectl describe pod` prints what the pod waits for; `swdt logs kubelet --grep NAME` prints " +
				"what kubelet does", look: lookAtWaiting,
		},
		{
			ID: "pods-restarting", Title: "no pod crashes repeatedly", Severity: finding.Warning, Needs: pods,
			Link:   docsPods,
			Means:  "A container exits soon after each start; kubelet waits longer before each restart.",
			Remedy: "`kubectl logs --previous` prints the last lines of the container", look: lookAtRestarting,
		},
		{
			ID: "pods-terminating", Title: "no pod is stuck in Terminating", Severity: finding.Warning, Needs: pods,
			Link:  docsPods,
			Means: "A pod was deleted and its containers do not stop: its name, volumes and resources stay in use.",
			Remedy: "`swdt cri pods` shows whether the runtime still has the pod; `swdt logs containerd` prints " +
				"what the runtime waits for", look: lookAtTerminating,
		},
		{
			ID: "pod-os", Title: "pods on this node are for Windows", Severity: finding.Warning, Needs: pods,
			Means: "A pod for Linux was scheduled on this node: only a node selector or a taint prevents that. " +
				"kubelet rejects it, or never pulls its image.",
			Remedy: "give pods a nodeSelector kubernetes.io/os, and this node a taint: " +
				"`kubectl taint node NODE os=windows:NoSchedule`", look: lookAtPodOS,
			Link: "https://kubernetes.io/docs/concepts/windows/user-guide/" +
				"#ensuring-os-specific-workloads-land-on-the-appropriate-container-host",
		},
	}
}

// maxPending is the age from which a pod that is still Pending is reported. A deleted pod that
// still exists is reported when maxPending has passed since the end of the pod's grace period.
const maxPending = 5 * time.Minute

func lookAtWaiting(f *Facts) (all []finding.Finding) {
	for _, p := range *f.Pods.Value {
		age := f.Taken.Sub(p.Created)
		if p.Phase != "Pending" || age < maxPending || !p.Deleted.IsZero() {
			continue
		}
		why := cmp.Or(strings.Join(p.Waiting, "; "), p.Reason, "none of its containers has a state yet")
		all = append(all, finding.New(why, "pod %s has been Pending for %s", p, age.Round(time.Minute)).
			Remedied("%s; %s", remedy.KubectlCommand("describe", "pod", "-n", p.Namespace, p.Name),
				remedy.Command("logs", "kubelet", "--grep", p.Name)))
	}
	return all
}

func lookAtRestarting(f *Facts) (all []finding.Finding) {
	for _, p := range *f.Pods.Value {
		looping := slices.ContainsFunc(p.Waiting,
			func(why string) bool { return strings.Contains(why, "CrashLoopBackOff") })
		if looping {
			all = append(all, finding.New(strings.Join(p.Waiting, "; "), "a container of pod %s has exited %s",
				p, times(p.Restarts)).
				Remedied("%s", remedy.KubectlCommand("logs", "--previous", "-n", p.Namespace, p.Name)))
		}
	}
	return all
}

func lookAtTerminating(f *Facts) (all []finding.Finding) {
	for _, p := range *f.Pods.Value {
		if late := f.Taken.Sub(p.Deleted); !p.Deleted.IsZero() && late > maxPending {
			all = append(all, finding.New(fmt.Sprintf("its grace period ended at %s", p.Deleted.Format(time.RFC3339)),
				"pod %s should have ended %s ago", p, late.Round(time.Minute)))
		}
	}
	return all
}

func lookAtPodOS(f *Facts) (all []finding.Finding) {
	for _, p := range *f.Pods.Value {
		if p.Reason == "PodOSNotSupported" || p.OS != "" && p.OS != "windows" {
			all = append(all, finding.New(strings.Trim("its operating system is "+p.OS+"; "+p.Reason, "; "),
				"pod %s is not for Windows", p))
		}
	}
	return all
}

// podNetworkRules returns the rules on the parts of the cluster that connect pods on Windows nodes to
// the network.
func podNetworkRules() []Rule {
	network := []string{"podNetwork"}
	rule := func(id, title, means, link string) Rule {
		return fromPreflight(Rule{ID: id, Title: title, Severity: finding.Warning, Needs: network, Means: means,
			Link: link}, gatheredNetwork)
	}
	return []Rule{
		rule("calico", "Calico is set up for Windows",
			"Calico's defaults are for Linux: with BGP, with borrowed addresses or without HNS, pods on Windows get "+
				"no network, or cannot be reached.", docsCalico),
		rule("flannel", "flannel is set up for Windows",
			"Windows' VXLAN has a fixed port, and network numbers from 4096 on: with flannel's defaults, pods on "+
				"this node cannot be reached.", docsFlannel),
		rule("antrea", "Antrea has its agent for Windows", "Without the agent on this node, pods get no network.",
			docsAntrea),
		neededByPods(rule("kube-proxy", "kube-proxy runs on Windows nodes",
			"Services have no load balancers: pods on this node do not reach them.", docsDebug)),
	}
}

// neededByPods returns r with two exceptions. The returned rule finds nothing if a Windows service
// has the rule's ID as its name, since the service replaces the DaemonSet. If no pod of this node
// is in the pod network, the findings of the returned rule have the severity Info.
func neededByPods(r Rule) Rule {
	look := r.look
	r.look = func(f *Facts) []finding.Finding {
		if f.service(r.ID).Name != "" {
			return nil
		}
		all := look(f)
		if f.Pods.Value != nil && !slices.ContainsFunc(*f.Pods.Value, func(p Pod) bool { return !p.HostNetwork }) {
			for i := range all {
				all[i] = all[i].As(finding.Info)
			}
		}
		return all
	}
	return r
}
